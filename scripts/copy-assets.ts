/** Copies what the compiler leaves out into dist/: the migrations, and what the status page brings. */
import { cp } from 'node:fs/promises';

for (const directory of ['store/migrations', 'web/page/assets']) {
  await cp(`src/${directory}`, `dist/${directory}`, { recursive: true });
}
