import { expect, it } from 'vitest';
import { parseSmtpUrl } from '../../../src/config/addresses.ts';

const login = { user: 'ops@example.com', pass: 'a:b/%' };
it.each([
  ['smtps://mail.example.com', 'mail.example.com', 465, 'implicit', undefined],
  [
    'smtps://ops%40example.com:a%3Ab%2F%25@mail.example.com/',
    'mail.example.com',
    465,
    'implicit',
    login,
  ],
  ['smtps://ops@example.com:a:b%2F%25@[::1]', '::1', 465, 'implicit', login],
  ['SMTP://Mail.Example.com:2525', 'mail.example.com', 2525, 'starttls', undefined],
  ['smtp://bücher.example', 'xn--bcher-kva.example', 587, 'starttls', undefined],
  ['smtp://[::1]:80', '::1', 80, 'starttls', undefined],
  ['smtp://10.0.0.7?tls=off', '10.0.0.7', 25, 'off', undefined],
] as const)('%s is the address of a mail server', (text, host, port, tls, expected) => {
  expect(parseSmtpUrl(text)).toEqual({ value: { host, port, tls, login: expected } });
});

it.each([
  ['https://5ecret.example.com', /^must be like smtps:/],
  ['smtps://', /^must be like/],
  ['smtps://mail.example.com:99999', /^must be like/],
  ['smtps://ops:5ec/ret@mail.example.com', /^must be like/],
  ['smtps://ops:5#ecret@mail.example.com', /^must be like/],
  ['smtps://mail.example.com/5ecret', /^must be like/],
  ['smtps://mail.example.com?tls=5ecret', /^must be like/],
  ['smtps://mail example.com', /^must be like/],
  ['smtps://5ecret@mail.example.com', /^must have user:password/],
  ['smtps://ops:@mail.example.com', /^must have user:password/],
  ['smtps://ops:5ecret%@mail.example.com', /^must have user:password/],
  ['smtps://mail.example.com?tls=off', /no login to end in \?tls=off$/],
  ['smtp://ops:5ecret@mail.example.com?tls=off', /no login to end in \?tls=off$/],
])('%s is no address of a mail server, and the fault has no part of it', (text, fault) => {
  const parsed = parseSmtpUrl(text);
  expect(parsed.fault).toMatch(fault);
  expect(parsed.fault).not.toMatch(/5ecret|example|ops/);
});
