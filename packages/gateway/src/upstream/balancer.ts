import { fnv1a, type Random } from 'holdfast';
import { type Candidate, Choice, type Target } from 'holdfast/machines';
import type { LoadBalancingConfig, OutlierEjectionConfig } from '../file/gateway-config.ts';

export type Member = Target & Candidate;

export interface Share {
  readonly member: Member;
  /** A whole number. An instance with twice the weight gets twice the requests. */
  readonly weight: number;
}

const pointsPerWeight = 64;

/** These settings never eject an instance. */
const never: OutlierEjectionConfig = { consecutive: Infinity, ejectForMs: 1, maxEjectForMs: 1 };

interface Known {
  has(member: Target): boolean;
}

/**
 * Selects the instance of each attempt. It prefers instances that are neither ejected nor tried before, and
 * never takes one with an open breaker.
 */
export class Balancer {
  readonly #strategy: LoadBalancingConfig['strategy'];
  readonly #ejects: boolean;
  readonly #choice: Choice<Member>;
  /** Each instance occurs once per unit of its weight. */
  #members: readonly Member[] = [];
  #distinct: readonly Member[] = [];
  #ring: readonly Point[] = [];
  #turn = 0;

  constructor(
    strategy: LoadBalancingConfig['strategy'],
    ejection: OutlierEjectionConfig | null,
    random: Random,
  ) {
    this.#strategy = strategy;
    this.#ejects = ejection !== null;
    const { consecutive, ejectForMs, maxEjectForMs } = ejection ?? never;
    this.#choice = new Choice({ consecutive, ejectForMs: [ejectForMs, maxEjectForMs] }, random);
  }

  get size(): number {
    return this.#distinct.length;
  }

  setShares(shares: readonly Share[]): void {
    this.#distinct = shares.map(({ member }) => member);
    const divisor = shares.reduce((all, { weight }) => greatestCommonDivisor(all, weight), 0) || 1;
    const units = shares.map(({ member, weight }) => ({ member, weight: weight / divisor }));
    this.#members = this.#strategy === 'roundRobin' ? interleaved(units) : repeated(units);
    this.#ring = this.#strategy === 'hash' ? ringOf(units) : [];
  }

  choose(
    now: number,
    hash: number,
    tried: Known | undefined,
    refused: Known | undefined,
  ): Member | undefined {
    const members = this.#members;
    if (members.length === 1) {
      const only = members[0]!;
      return refused?.has(only) || only.refuses(now) ? undefined : only;
    }
    if (this.#strategy === 'p2c') return this.#choice.choose(members, now, tried, refused);
    const isRing = this.#strategy === 'hash';
    const start = isRing ? this.#pointFor(hash) : this.#turn++;
    const length = isRing ? this.#ring.length : members.length;
    let ejected: Member | undefined;
    let again: Member | undefined;
    for (let step = 0; step < length; step++) {
      const index = (start + step) % length;
      const member = isRing ? this.#ring[index]!.member : members[index]!;
      if (refused?.has(member) || member.refuses(now)) continue;
      if (this.#ejects && this.#choice.isEjected(member, this.#distinct, now)) ejected ??= member;
      else if (tried?.has(member)) again ??= member;
      else return member;
    }
    return again ?? ejected;
  }

  #pointFor(hash: number): number {
    const ring = this.#ring;
    let low = 0;
    let high = ring.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (ring[middle]!.at < hash) low = middle + 1;
      else high = middle;
    }
    return low === ring.length ? 0 : low;
  }
}

interface Point {
  readonly at: number;
  readonly member: Member;
}

function ringOf(shares: readonly Share[]): Point[] {
  return shares
    .flatMap(({ member, weight }) =>
      Array.from({ length: weight * pointsPerWeight }, (_, index) => ({
        at: spread(fnv1a(`${member.name} ${index}`)),
        member,
      })),
    )
    .sort((a, b) => a.at - b.at);
}

/** Mixes the bits of a hash. Otherwise, similar names would be close together on the ring. */
export function spread(hash: number): number {
  let mixed = hash | 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

function repeated(shares: readonly Share[]): Member[] {
  return shares.flatMap(({ member, weight }) => Array.from({ length: weight }, () => member));
}

/** Mixes instances evenly, as nginx does: weights 2 and 1 give the order a, b, a. */
function interleaved(shares: readonly Share[]): Member[] {
  const total = shares.reduce((sum, { weight }) => sum + weight, 0);
  const current = shares.map(() => 0);
  return Array.from({ length: total }, () => {
    let best = 0;
    for (let index = 0; index < shares.length; index++) {
      current[index]! += shares[index]!.weight;
      if (current[index]! > current[best]!) best = index;
    }
    current[best]! -= total;
    return shares[best]!.member;
  });
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
