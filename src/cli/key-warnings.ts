import { systemClock } from '../app/clock.ts';
import { describeUnsetVariable, quoteId } from '../config/redaction.ts';
import type { ProjectConfig } from '../config/config.ts';
import type { SecretSource } from '../domain/secret-source.ts';
import { ApiError } from '../monitor/errors.ts';
import { isUnset, type SecretFinding } from './secret-findings.ts';

/** Keys with fewer characters are accepted, but `check` warns (docs/specification.md#rows). */
const MIN_RECOMMENDED_LENGTH = 16;

/** What people copy together with a key. All of it would be sent as the key. */
const QUOTES = /^(["'`]).*\1$/;
const HEADER = /^(Bearer(?= )|X-API-Key(?= ?:)|Authorization(?= ?:))/i;

/** Returns a finding for each API key that is missing, unusable, short or probably not only the key, with its project. */
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
    const message = doubtAbout(await readKey(source, systemClock));
    return message === undefined ? undefined : { message, isError: false };
  } catch (error) {
    if (error instanceof ApiError) return { message: error.message, isError: true };
    throw error;
  }
}

/** Returns why a usable key is probably not the right one; undefined if nothing is to be said. */
function doubtAbout(key: string): string | undefined {
  if (QUOTES.test(key)) {
    return 'the API key has quotes around it, which are sent too: remove them if they are no part of it';
  }
  const header = HEADER.exec(key)?.[0];
  if (header !== undefined) {
    return `the API key begins with ${header}, which is sent too: remove it if it is no part of the key`;
  }
  return key.length < MIN_RECOMMENDED_LENGTH
    ? `the API key has fewer than ${MIN_RECOMMENDED_LENGTH} characters`
    : undefined;
}

function andMore(count: number): string {
  return count === 0 ? '' : ` and ${count} more`;
}
