import { DatabaseError } from 'pg';
import { expect, it } from 'vitest';
import { toStoreError } from '../../../../src/store/postgres/errors.ts';

function messageOf(text: string, ...secrets: readonly string[]): string {
  return toStoreError(new DatabaseError(text, text.length, 'error'), secrets).message;
}

it('a server error shows no part of the connection string', () => {
  const message = messageOf(
    'no role "app" in "shop" (app:pass+word?)',
    'app',
    'pass+word?',
    'shop',
  );
  expect(message).toContain('no role "[redacted]" in "[redacted]" ([redacted]:[redacted])');
});

it('the longer of two overlapping secrets is redacted', () => {
  expect(messageOf('role "app-of-shop"', 'app', '', 'app-of-shop')).toContain('role "[redacted]"');
});

it('short secrets are not redacted inside the text [redacted]', () => {
  expect(messageOf('x y', 'x', 'e', 'd', 'a')).toContain(' [redacted] y)');
});
