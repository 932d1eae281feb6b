import type { NewRecord } from './kafka-client.ts';

interface Job {
  readonly records: readonly NewRecord[];
  sent: number;
  resolve(): void;
  reject(error: unknown): void;
}

/** Kafka refuses a request that contains more than 1 MiB for one partition. This stays below. */
const partitionBytesMax = 900_000;
const requestBytesMax = 8 * 1024 * 1024;
const recordOverhead = 80;
const headerOverhead = 8;

/**
 * Sends records in as few requests as possible, one request at a time. This keeps the sequence numbers of the
 * producer in order. Kafka recognizes a repeated request by these numbers.
 */
export class Outbox {
  readonly #produce: (records: NewRecord[]) => Promise<void>;
  readonly #jobs: Job[] = [];
  #isSending = false;

  constructor(produce: (records: NewRecord[]) => Promise<void>) {
    this.#produce = produce;
  }

  /** Resolves when all records are stored. If it rejects, some of the records may be stored. */
  send(records: readonly NewRecord[]): Promise<void> {
    if (records.length === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      this.#jobs.push({ records, sent: 0, resolve, reject });
      if (!this.#isSending) void this.#sendAll();
    });
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true;
    while (this.#jobs.length > 0) {
      const { records, jobs } = this.#nextRequest();
      try {
        await this.#produce(records);
        for (const job of jobs) if (job.sent === job.records.length) job.resolve();
      } catch (error) {
        for (const job of jobs) job.reject(error);
        const [first] = this.#jobs;
        if (first && jobs.includes(first)) this.#jobs.shift();
      }
    }
    this.#isSending = false;
  }

  #nextRequest(): { records: NewRecord[]; jobs: Job[] } {
    const records: NewRecord[] = [];
    const jobs: Job[] = [];
    const bytes = new Map<string, number>();
    let total = 0;
    for (;;) {
      const [job] = this.#jobs;
      if (!job) return { records, jobs };
      jobs.push(job);
      for (; job.sent < job.records.length; job.sent++) {
        const record = job.records[job.sent]!;
        const name = `${record.topic}/${record.partition}`;
        const size = sizeOf(record);
        const inPartition = (bytes.get(name) ?? 0) + size;
        total += size;
        if (records.length > 0 && (inPartition > partitionBytesMax || total > requestBytesMax))
          return { records, jobs };
        bytes.set(name, inPartition);
        records.push(record);
      }
      this.#jobs.shift();
    }
  }
}

function sizeOf({ key, value, headers }: NewRecord): number {
  let size = recordOverhead + value.length + (key?.length ?? 0);
  for (const [name, text] of headers) size += headerOverhead + name.length + text.length;
  return size;
}
