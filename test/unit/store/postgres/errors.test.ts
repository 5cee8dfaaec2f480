import { DatabaseError } from 'pg';
import { expect, it } from 'vitest';
import {
  isCollision,
  isOutcomeUnknown,
  toStoreError,
} from '../../../../src/store/postgres/errors.ts';

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

it.each([
  ['a serialization failure', '40001', { collides: true, isUnknown: false }],
  ['a deadlock', '40P01', { collides: true, isUnknown: false }],
  [
    'a statement whose completion the server does not know',
    '40003',
    { collides: false, isUnknown: true },
  ],
  ['a server that shuts down', '57P01', { collides: false, isUnknown: true }],
  ['a violated constraint', '23505', { collides: false, isUnknown: false }],
])('%s (%s) is repeated only if it was not done', (_, code, expected) => {
  const error = Object.assign(new DatabaseError('refused', 7, 'error'), { code });
  expect({ collides: isCollision(error), isUnknown: isOutcomeUnknown(error) }).toEqual(expected);
});
