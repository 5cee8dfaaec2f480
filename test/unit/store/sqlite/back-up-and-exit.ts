/** Backs the store of the first argument up to the second, and exits when the draft exists. Prints its name and mode. */
import { readdirSync, statSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { backUp } from '../../../../src/store/sqlite/backup.ts';

const [path = '', target = ''] = process.argv.slice(2);

function exitWithDraft(): void {
  const draft = readdirSync(dirname(target)).find((name) => name.includes('.partial-'));
  if (draft === undefined) {
    setImmediate(exitWithDraft);
    return;
  }
  const { mode } = statSync(join(dirname(target), draft));
  writeSync(1, `${draft} ${(mode & 0o777).toString(8)}\n`);
  process.exit(143);
}

setImmediate(exitWithDraft);
await backUp({ path, target, replace: false });
