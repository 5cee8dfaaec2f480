import { DatabaseError } from 'pg';
import { expect, it } from 'vitest';
import { toStoreError } from '../../../../src/store/postgres/errors.ts';

function messageOf(text: string, ...secrets: readonly string[]): string {
  return toStoreError(new DatabaseError(text, text.length, 'error'), secrets).message;
}

it('a server error shows no part of the connection string that has 8 characters', () => {
  const message = messageOf(
    'no role "evalwatch" in "projects" (evalwatch:pass+word?)',
    'evalwatch',
    'pass+word?',
    'projects',
  );
  expect(message).toContain('no role "[redacted]" in "[redacted]" ([redacted]:[redacted])');
});

it('the longer of two overlapping secrets is redacted', () => {
  expect(messageOf('role "app-of-the-shop"', 'app-of-the', '', 'app-of-the-shop')).toContain(
    'role "[redacted]"',
  );
});

it('a short login leaves no holes in an error text that spell it out', () => {
  const secrets = ['postgres://u:p@db.example.com/shop', 'p', 'p', 'u', 'shop', 'db.example.com'];
  const error = new Error('Connection terminated unexpectedly');
  expect(toStoreError(error, secrets).message).toContain('(Connection terminated unexpectedly)');
});
