import { systemClock } from '../app/clock.ts';
import { describeUnsetVariable, quoteId } from '../config/redaction.ts';
import type { ProjectConfig } from '../config/config.ts';
import type { SecretSource } from '../domain/secret-source.ts';
import { ApiError } from '../monitor/errors.ts';

/** Keys with fewer characters are accepted, but `check` warns (docs/specification.md#rows). */
const MIN_RECOMMENDED_LENGTH = 16;

/** Returns a warning for each API key that is missing, unusable or short, with its project. Never contains a key. */
export async function keyWarnings(projects: readonly ProjectConfig[]): Promise<readonly string[]> {
  const bySource = Map.groupBy(projects, ({ key }) => JSON.stringify(key));
  const warnings = await Promise.all(
    [...bySource.values()].map(async ([project, ...others]) => {
      const fault = project && (await keyFault(project.key));
      return fault && `project ${quoteId(project.id)}${andMore(others.length)}: ${fault}`;
    }),
  );
  return warnings.filter((warning) => warning !== undefined);
}

async function keyFault(source: SecretSource): Promise<string | undefined> {
  if ('env' in source && source.value === undefined) {
    return describeUnsetVariable(source.env, 'api_key_env');
  }
  const { readKey } = await import('../evaluation-api/api-key.ts');
  try {
    const { length } = await readKey(source, systemClock);
    return length < MIN_RECOMMENDED_LENGTH
      ? `the API key has fewer than ${MIN_RECOMMENDED_LENGTH} characters`
      : undefined;
  } catch (error) {
    if (error instanceof ApiError) return error.message;
    throw error;
  }
}

function andMore(count: number): string {
  return count === 0 ? '' : ` and ${count} more`;
}
