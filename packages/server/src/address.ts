import { BlockList, isIP } from 'node:net';
import { OptionsError } from 'holdfast';
import type { Exchange } from './exchange.ts';

/** A list of trusted addresses, for example of load balancers. */
export interface Peers {
  has(address: string): boolean;
}

const cacheMax = 1000;

/** Creates a list from addresses (`'10.1.2.3'`, `'::1'`) and networks (`'10.0.0.0/8'`). */
export function peers(...ranges: readonly string[]): Peers {
  const list = new BlockList();
  for (const range of ranges) {
    const [, address = '', prefix] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(range) ?? [];
    const family = familyOf(address);
    const bits = prefix === undefined ? undefined : Number(prefix);
    const bitsMax = family === 'ipv4' ? 32 : 128;
    if (!family || (bits !== undefined && bits > bitsMax)) {
      throw new OptionsError('peers', range, 'an address or a network such as "10.0.0.0/8"');
    }
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, bits, family);
  }
  // Searching the list is slow, and the same few proxies send most requests. So the results are cached.
  const cache = new Map<string, boolean>();
  return {
    has(address) {
      const known = cache.get(address);
      if (known !== undefined) return known;
      const plain = unmapped(address);
      const family = familyOf(plain);
      const found = family !== undefined && list.check(plain, family);
      if (cache.size >= cacheMax) cache.clear();
      cache.set(address, found);
      return found;
    },
  };
}

/**
 * Returns the client's address. In `X-Forwarded-For`, only the addresses that trusted proxies added are used,
 * because a client can forge others.
 */
export function clientAddress(exchange: Exchange, proxies: Peers | undefined): string {
  const { peer } = exchange;
  if (!proxies?.has(peer)) return peer;
  const hops = exchange.headerLines('x-forwarded-for').join(',').split(',');
  let client = peer;
  for (const hop of hops.toReversed()) {
    const address = unmapped(hop.trim());
    if (isIP(address) === 0) break;
    client = address;
    if (!proxies.has(address)) break;
  }
  return client;
}

/**
 * Returns the key under which the requests of a client are counted. One IPv6 client usually owns a /64
 * network, so the key is that network.
 */
export function addressKey(given: string): string {
  const address = unmapped(given);
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.split('%')[0]!.split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const behind = tail === '' ? 0 : tail.split(':').length;
    while (groups.length + behind < 8) groups.push('0');
    groups.push(...tail.split(':'));
  }
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group || '0', 16).toString(16))
    .join(':')}::/64`;
}

/** Converts an IPv4 address in IPv6 form (`::ffff:10.1.2.3`) to plain IPv4. */
function unmapped(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}

function familyOf(address: string): 'ipv4' | 'ipv6' | undefined {
  const version = isIP(address);
  return version === 0 ? undefined : version === 4 ? 'ipv4' : 'ipv6';
}
