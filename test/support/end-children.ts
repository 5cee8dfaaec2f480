import { afterAll } from 'vitest';
import { children } from './children.ts';

// After each file: a test that timed out never gets to the end of its scope.
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
});
