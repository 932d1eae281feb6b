import { useEffect, useRef, useState } from 'preact/hooks';
import { ErrorBoundary, LocationProvider, lazy, Route, Router, useLocation } from 'preact-iso';
import { span } from './format.ts';
import { KeyMap } from './frame/key-map.tsx';
import { Rail } from './frame/rail.tsx';
import { Tabs } from './frame/tabs.tsx';
import { TopBar } from './frame/top-bar.tsx';
import { startKeys, useKeys } from './keys.ts';
import { isConnected, isHeld, isStale, overview, setHeld, startLive, storeNow } from './live.ts';
import { GlyphShapes } from './parts/glyph.tsx';
import { Overview } from './screens/overview.tsx';
import { SignIn } from './screens/sign-in.tsx';
import { session } from './session.ts';
import { ToastBox, toast } from './toast.tsx';

// A list and its detail screens are one chunk: they share code, and people usually open both.
const ParkingLot = lazy(() => import('./parked/screens.ts').then((each) => each.ParkingLot));
const Event = lazy(() => import('./parked/screens.ts').then((each) => each.Event));
const Replays = lazy(() => import('./parked/screens.ts').then((each) => each.Replays));
const Replay = lazy(() => import('./parked/screens.ts').then((each) => each.Replay));
const Topics = lazy(() => import('./topics/screens.ts').then((each) => each.Topics));
const Topic = lazy(() => import('./topics/screens.ts').then((each) => each.Topic));
const Policies = lazy(() => import('./policies/screens.ts').then((each) => each.Policies));
const Policy = lazy(() => import('./policies/screens.ts').then((each) => each.Policy));
const Assemblies = lazy(() => import('./assemblies/screens.ts').then((each) => each.Assemblies));
const Assembly = lazy(() => import('./assemblies/screens.ts').then((each) => each.Assembly));
const Gateway = lazy(() => import('./gateway/screens.ts').then((each) => each.Gateway));
const GatewayRequest = lazy(() => import('./gateway/screens.ts').then((each) => each.GatewayRequest));
const Simulator = lazy(() => import('./screens/simulator.tsx').then((each) => each.Simulator));
const Audit = lazy(() => import('./screens/audit.tsx').then((each) => each.Audit));
const More = lazy(() => import('./screens/more.tsx').then((each) => each.More));
const Missing = lazy(() => import('./screens/missing.tsx').then((each) => each.Missing));

export function App() {
  return (
    <LocationProvider>
      <GlyphShapes />
      <Content />
      <ToastBox />
    </LocationProvider>
  );
}

function Content() {
  if (session.value === undefined) return <p class="unseen">Loading</p>;
  return session.value === null ? <SignIn /> : <Frame />;
}

function Frame() {
  const { route, path } = useLocation();
  const [areKeysShown, showKeys] = useState(false);
  const main = useRef<HTMLElement>(null);
  useEffect(startLive, []);
  useEffect(() => startKeys((to) => route(to)), [route]);
  useEffect(() => {
    // Start a new screen at the top. The focus is on its headline, so that a screen reader reads it.
    scrollTo(0, 0);
    main.current?.querySelector<HTMLElement>('h1')?.focus();
  }, [path]);
  useKeys({
    '?': { says: 'this map', run: () => showKeys(true) },
    '/': { says: 'search', run: () => document.querySelector<HTMLInputElement>('#search')?.focus() },
    '.': { says: 'hold the page still, or let it go on', run: () => setHeld(!isHeld.value) },
    y: { says: 'copy the link', run: () => void navigator.clipboard?.writeText(location.href) },
    z: { says: 'undo the last act', run: () => toast.value?.undo?.() },
  });
  return (
    <>
      <a class="skip" href="#main">
        To the content
      </a>
      <div class="app">
        <Rail />
        <div>
          <TopBar showKeys={() => showKeys(true)} />
          {isStale.value && (
            <p class="stale" role="alert">
              {isConnected.value ? 'The store' : 'The console'} does not answer. What you see is from{' '}
              {span(storeNow() - (overview.value?.now ?? storeNow()))} ago; acts are off until it is back.
            </p>
          )}
          <main id="main" ref={main} tabIndex={-1}>
            <ErrorBoundary onError={(error) => console.error(error)}>
              <Router>
                <Route path="/" component={Overview} />
                <Route path="/parked" component={ParkingLot} />
                <Route path="/parked/:id" component={Event} />
                <Route path="/replays" component={Replays} />
                <Route path="/replays/:id" component={Replay} />
                <Route path="/topics" component={Topics} />
                <Route path="/topics/:topic" component={Topic} />
                <Route path="/policies" component={Policies} />
                <Route path="/policies/:policy" component={Policy} />
                <Route path="/assemblies" component={Assemblies} />
                <Route path="/assemblies/:id" component={Assembly} />
                <Route path="/gateway" component={Gateway} />
                <Route path="/gateway/requests/:id" component={GatewayRequest} />
                <Route path="/simulator" component={Simulator} />
                <Route path="/simulator/:run" component={Simulator} />
                <Route path="/audit" component={Audit} />
                <Route path="/more" component={More} />
                <Route path="/sign-in" component={SignIn} />
                <Route default component={Missing} />
              </Router>
            </ErrorBoundary>
          </main>
        </div>
      </div>
      <Tabs />
      {areKeysShown && <KeyMap close={() => showKeys(false)} />}
    </>
  );
}
