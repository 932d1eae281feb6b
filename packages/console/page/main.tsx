import { render } from 'preact';
import { App } from './app.tsx';
import { startTheme } from './frame/top-bar.tsx';
import { begin } from './session.ts';

startTheme();
render(<App />, document.getElementById('app')!);
void begin();
