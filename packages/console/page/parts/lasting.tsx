const spans: readonly (readonly [flag: string, ms: number, says: string])[] = [
  ['5m', 3e5, '5 minutes'],
  ['15m', 9e5, '15 minutes'],
  ['1h', 36e5, '1 hour'],
  ['4h', 144e5, '4 hours'],
  ['24h', 864e5, '24 hours'],
  ['', 0, 'until somebody ends it'],
];

/**
 * How long a control (such as a pause) applies, as the value of the flag `--for`; empty: until an operator
 * ends it.
 */
export type Lasting = string;
export const usualLasting: Lasting = '15m';

/** The field for the duration of a control. A control with an end cannot be forgotten. */
export function LastingField({
  value,
  onChange,
}: {
  readonly value: Lasting;
  readonly onChange: (value: Lasting) => void;
}) {
  return (
    <label class="field">
      <span>For how long?</span>
      <select value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {spans.map(([flag, , says]) => (
          <option key={flag} value={flag}>
            {says}
          </option>
        ))}
      </select>
    </label>
  );
}

export function lastingBody(lasting: Lasting): { forMs?: number } {
  const ms = spans.find(([flag]) => flag === lasting)?.[1] ?? 0;
  return ms > 0 ? { forMs: ms } : {};
}

export function lastingFlag(lasting: Lasting): string {
  return lasting === '' ? '' : ` --for ${lasting}`;
}
