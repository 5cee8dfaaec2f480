import type { Observation } from '../oracle/observation.ts';
import type { LivingWorld } from './living-world.ts';

/**
 * Checks that at rest the store shows the prompts of the world as they are, and that no failure is pending whose error_info
 * is available.
 */
export function checkAgainstWorld(
  { projects, statuses, failures }: Observation,
  { world, hasErrorInfo }: LivingWorld,
): readonly string[] {
  const shown = new Set(
    statuses.map((row) => JSON.stringify([row.project, row.prompt_id, row.status])),
  );
  const real = new Set(
    projects.flatMap(({ id: project }) =>
      [...(world.prompts(project)?.values() ?? [])].map(({ id, status }) =>
        JSON.stringify([project, id, status]),
      ),
    ),
  );
  return [
    ...[...shown.difference(real)].map((row) => `shown, not so: ${row}`),
    ...[...real.difference(shown)].map((row) => `so, not shown: ${row}`),
    ...failures
      .filter((row) => !row.settled && hasErrorInfo(row.project, row.prompt_id))
      .map((row) => `not settled: ${JSON.stringify(row)}`),
  ];
}
