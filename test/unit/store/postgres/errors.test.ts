import { DatabaseError } from 'pg';
import { expect, it } from 'vitest';
import { toStoreError } from '../../../../src/store/postgres/errors.ts';

function messageOf(text: string, ...secrets: readonly string[]): string {
  return toStoreError(new DatabaseError(text, text.length, 'error'), secrets).message;
}

it('hides every part of the connection string in what a server says', () => {
  const message = messageOf(
    'no role "app" in "shop" (app:pass+word?)',
    'app',
    'pass+word?',
    'shop',
  );
  expect(message).toContain('no role "[redacted]" in "[redacted]" ([redacted]:[redacted])');
});

it('hides the longer of two of which one is a part of the other', () => {
  expect(messageOf('role "app-of-shop"', 'app', '', 'app-of-shop')).toContain('role "[redacted]"');
});

it('does not look for short ones in what has taken the place of others', () => {
  expect(messageOf('x y', 'x', 'e', 'd', 'a')).toContain(' [redacted] y)');
});
