import { afterAll } from 'vitest';
import { children } from './children.ts';

// Runs after each test file: a test that timed out never reaches the end of its scope.
afterAll(() => {
  for (const child of children) child.kill('SIGKILL');
});
