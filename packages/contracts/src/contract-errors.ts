import { HoldfastError } from 'holdfast';
import type { FeatureName } from './features.ts';

/** An event or a batch is larger than the engine allows. Nothing of the batch was stored. */
export class TooLargeError extends HoldfastError {
  declare readonly what: string;
  declare readonly size: number;
  declare readonly sizeMax: number;

  constructor(what: string, size: number, sizeMax: number) {
    super('HOLDFAST_TOO_LARGE', `${what} is ${size}, and at most ${sizeMax} is taken`);
    this.what = what;
    this.size = size;
    this.sizeMax = sizeMax;
  }
}

/** The topic was not declared, or was declared with another ordering. */
export class TopicError extends HoldfastError {
  declare readonly topic: string;

  constructor(topic: string, wrong: string) {
    super('HOLDFAST_TOPIC', `topic ${JSON.stringify(topic)} ${wrong}`);
    this.topic = topic;
  }
}

/** The engine lacks a feature that this call needs. `Engine.features` lists the features of an engine. */
export class FeatureMissingError extends HoldfastError {
  declare readonly feature: FeatureName;

  constructor(feature: FeatureName, why: string) {
    super('HOLDFAST_FEATURE_MISSING', `${feature}: ${why}`);
    this.feature = feature;
  }
}

/** The engine has reached its configured maximum of entries. Nothing was stored. */
export class EngineFullError extends HoldfastError {
  constructor(what: string, max: number) {
    super('HOLDFAST_ENGINE_FULL', `at most ${max} ${what} are kept`);
  }
}

/** An operator's action on parked events (set aside for an operator) is not allowed. Nothing was changed. */
export class TriageError extends HoldfastError {
  constructor(code: 'EMPTY_FILTER' | 'NO_REASON' | 'BUSY' | 'CHANGED' | 'NOT_UNDOABLE', message: string) {
    super(`HOLDFAST_TRIAGE_${code}`, message);
  }
}
