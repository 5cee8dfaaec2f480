import type { FaultRule } from '../../../src/simulator/faults/fault-plan.ts';
import { parseFaults } from '../../../src/simulator/faults/fault-text.ts';

/** Faults that the preset `all` lacks and a reader of listings must handle. */
const DAMAGES = [
  'items=numeric-id',
  'items=long-id',
  'items=surrogate-id',
  'items=no-status',
  'items=numeric-status',
  'items=prototype-keys',
  'items=odd-fields',
  'items=not-an-object',
  'items=none-usable',
  'echo=item',
  'echo=redirect',
  'echo=validation',
]
  .map((damage) => `${damage}:0.006`)
  .join(',');

/**
 * Reads the faults of a soak as {@link parseFaults} does; `all` means the preset and damage to listings. Items echo keys in
 * listings only: an error_info with a key would differ from the world's.
 */
export function soakFaults(text: string): readonly FaultRule[] {
  const rules = parseFaults(text === 'all' ? `all,${DAMAGES}` : text);
  return rules.flatMap((rule) =>
    rule.fault.kind === 'echo' && rule.fault.where === 'item'
      ? (['list_prompts', 'list_datasets'] as const).map((endpoint) => ({ ...rule, endpoint }))
      : [rule],
  );
}
