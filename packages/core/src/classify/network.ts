import type { Pack } from '../decide/outcome.ts';
import { causesMax, type UnknownObject } from './causes-of.ts';
import { isObject } from './is-object.ts';
import { definePack } from './pack.ts';

/** Error codes of Node, undici and axios, and error messages of `fetch`, that mean a failed connection. */
const known =
  /^(E(CONN|HOST|NET|PIPE|AI_AGAIN|NOTFOUND|ADDRNOTAVAIL|\w*TIMEDOUT)|UND_ERR_(SOCKET|\w+_TIMEOUT)|ERR_(NETWORK|STREAM_PREMATURE|HTTP2_(GOAWAY|S(TREAM|ESSION)_ERROR))|TimeoutError|TypeError: (fetch failed|failed to fetch|load failed|terminated|(a )?network ?(error|request|connection)|the (internet|network) connection|error sending request|unable to connect))/i;

/**
 * Codes and messages of failures before the request was sent. The server cannot have processed such a
 * request.
 */
const unsent =
  /^(ECONNREFUSED|EAI_AGAIN|ENOTFOUND|UND_ERR_CONNECT_|ERR_HTTP2_GOAWAY)|before secure TLS|REFUSED_STREAM/;

/**
 * Classifies failed connections: refused, reset, timed out, no route, host name not found. A host name that
 * is not found is transient, because a failing name server causes the same error.
 */
export const network: Pack<'network'> = /* @__PURE__ */ definePack(
  'network',
  (error, _, all) => {
    if (!isKnown(error)) return undefined;
    // Every error must prove that no server has received the request. A list of `causesMax` errors may be
    // incomplete, so it proves nothing.
    const isProof = (each: UnknownObject) => isUnsent(each) || (isWrapper(each) && !isKnown(each));
    return { class: 'transient', unprocessed: all.length < causesMax && all.every(isProof) };
  },
  false,
  true,
);

function isKnown(error: UnknownObject): boolean {
  // The errors inside an AggregateError are checked one by one, so skip it here. If an error has a cause,
  // ignore its message: `fetch failed` may hide an expired certificate.
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
