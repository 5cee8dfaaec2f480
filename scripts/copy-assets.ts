/** Copies what the compiler leaves out into dist/: the migrations. */
import { cp } from 'node:fs/promises';

const migrations = 'store/migrations';
await cp(`src/${migrations}`, `dist/${migrations}`, { recursive: true });
