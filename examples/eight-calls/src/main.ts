// A page made of eight calls. One of them hangs, and the page is there all the same.
import { renderPage } from './page.ts';
import { startServices } from './services.ts';

const services = await startServices(new Set(['reviews']));
console.log(await renderPage(services.origin));
services.close();
