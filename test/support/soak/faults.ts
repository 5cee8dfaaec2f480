import type { FaultRule } from '../../../src/simulator/faults/fault-plan.ts';
import { parseFaults } from '../../../src/simulator/faults/fault-text.ts';

/** What the preset `all` lacks and a reader of listings has to stand. */
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
 * The faults of a soak: a text as {@link parseFaults} reads it, `all` meaning the preset and damage to listings. Single
 * prompts are spared keys in their error_info, which would come out otherwise than the world has it.
 */
export function soakFaults(text: string): readonly FaultRule[] {
  const rules = parseFaults(text === 'all' ? `all,${DAMAGES}` : text);
  return rules.flatMap((rule) =>
    rule.fault.kind === 'echo' && rule.fault.where === 'item'
      ? (['list_prompts', 'list_datasets'] as const).map((endpoint) => ({ ...rule, endpoint }))
      : [rule],
  );
}
