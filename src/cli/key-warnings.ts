import { systemClock } from '../app/clock.ts';
import { describeUnsetVariable, quoteId } from '../config/redaction.ts';
import type { ProjectConfig } from '../config/config.ts';
import type { SecretSource } from '../domain/secret-source.ts';
import { ApiError } from '../monitor/errors.ts';
import { isUnset, type SecretFinding } from './secret-findings.ts';

/** Keys with fewer characters are accepted, but `check` warns (docs/specification.md#rows). */
const MIN_RECOMMENDED_LENGTH = 16;

/** Returns a finding for each API key that is missing, unusable or short, with its project. */
export async function keyFindings(
  projects: readonly ProjectConfig[],
): Promise<readonly SecretFinding[]> {
  const bySource = Map.groupBy(projects, ({ key }) => JSON.stringify(key));
  const findings = await Promise.all(
    [...bySource.values()].map(async ([project, ...others]) => {
      if (project === undefined) return undefined;
      const found = await findFault(project.key);
      if (found === undefined) return undefined;
      const whose = `project ${quoteId(project.id)}${andMore(others.length)}`;
      return { ...found, message: `${whose}: ${found.message}` };
    }),
  );
  return findings.filter((finding) => finding !== undefined);
}

async function findFault(source: SecretSource): Promise<SecretFinding | undefined> {
  if ('env' in source && isUnset(source)) {
    return { message: describeUnsetVariable(source.env, 'api_key_env'), isError: false };
  }
  const { readKey } = await import('../evaluation-api/api-key.ts');
  try {
    const { length } = await readKey(source, systemClock);
    if (length >= MIN_RECOMMENDED_LENGTH) return undefined;
    const message = `the API key has fewer than ${MIN_RECOMMENDED_LENGTH} characters`;
    return { message, isError: false };
  } catch (error) {
    if (error instanceof ApiError) return { message: error.message, isError: true };
    throw error;
  }
}

function andMore(count: number): string {
  return count === 0 ? '' : ` and ${count} more`;
}
