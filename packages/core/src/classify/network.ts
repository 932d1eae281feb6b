import type { Pack } from '../decide/outcome.ts';
import { causesMax, type UnknownObject } from './causes-of.ts';
import { isObject } from './is-object.ts';
import { definePack } from './pack.ts';

/**
 * How a connection that could not be made, broke or took too long is called: by the codes of Node, undici and axios,
 * and by the messages of `fetch` in browsers, Deno, Bun and workers.
 */
const known =
  /^(E(CONN|HOST|NET|PIPE|AI_AGAIN|NOTFOUND|ADDRNOTAVAIL|\w*TIMEDOUT)|UND_ERR_(SOCKET|\w+_TIMEOUT)|ERR_(NETWORK|STREAM_PREMATURE|HTTP2_(GOAWAY|S(TREAM|ESSION)_ERROR))|TimeoutError|TypeError: (fetch failed|failed to fetch|load failed|terminated|(a )?network ?(error|request|connection)|the (internet|network) connection|error sending request|unable to connect))/i;

/** Those that come before the first byte of a request has left: the only proof that nothing was sent. */
const unsent =
  /^(ECONNREFUSED|EAI_AGAIN|ENOTFOUND|UND_ERR_CONNECT_|ERR_HTTP2_GOAWAY)|before secure TLS|REFUSED_STREAM/;

/**
 * The connection failed: refused, reset, timed out, no route, no name. A name that is not found is taken for transient,
 * because a name server in trouble and a machine without a network say the same, and nothing was sent.
 */
export const network: Pack<'network'> = /* @__PURE__ */ definePack(
  'network',
  (error, _, all) => {
    if (!isKnown(error)) return undefined;
    // Proof takes all of them: where two addresses were tried, either may have got the request. An error around others
    // says nothing of its own, and where there are too many to look at there is no proof.
    const isProof = (each: UnknownObject) => isUnsent(each) || (isWrapper(each) && !isKnown(each));
    return { class: 'transient', unprocessed: all.length < causesMax && all.every(isProof) };
  },
  false,
  true,
);

function isKnown(error: UnknownObject): boolean {
  // An aggregate repeats the code of one of its parts. And what has a cause is as good or bad as that:
  // `fetch failed` may be a certificate that has expired.
  return (
    !Array.isArray(error.errors) &&
    (known.test(`${error.code}`) || known.test(`${error.name}: ${isWrapper(error) || error.message}`))
  );
}

function isUnsent({ code, message, syscall, socket }: UnknownObject): boolean {
  return (
    unsent.test(`${code} ${message}`) ||
    syscall === 'connect' ||
    (isObject(socket) && socket.bytesWritten === 0)
  );
}

function isWrapper({ cause, errors }: UnknownObject): boolean {
  return isObject(cause) || Array.isArray(errors);
}
