import { expect, it } from 'vitest';
import { parseSchedule, validateSchedule } from '../../../src/schedule/calendar.ts';

it.each([
  '* * * * *',
  '*/30 * * * * *',
  '  0 9 * * 1-5  ',
  '0 0 1 jan,JUL mon-FRI',
  '0 0 ? * 7',
  '0 0 L-3,15W,LW * *',
  '0 0 * * 2#3,5L',
  '0 0 29 2 *',
  '0 0 29 2 1#5',
  '0 22-2 * * sat-sun',
])('%j is a valid schedule', (expression) => {
  expect(validateSchedule(expression)).toBeUndefined();
});

it.each([
  ['', 'of 5 fields, or 6 with seconds first, not 0'],
  ['* * * *', 'not 4'],
  ['* * * * * * *', 'not 7'],
  ['@daily', 'not 1'],
  ['61 * * * *', '"61" is not a valid minute (0 to 59)'],
  ['60 * * * * *', '"60" is not a valid second (0 to 59)'],
  ['0 24 * * *', '"24" is not a valid hour (0 to 23)'],
  ['0 0 32 * *', '"32" is not a valid day of month'],
  ['0 0 0 * *', '"0" is not a valid day of month'],
  ['0 0 * 13 *', '"13" is not a valid month (1 to 12 or jan to dec)'],
  ['0 0 * * 8', '"8" is not a valid weekday'],
  ['0 0 * * 1#6', '"1#6" is not a valid weekday'],
  ['*/0 * * * *', '"*/0" is not a valid minute'],
  ['1,,2 * * * *', '"1,,2" is not a valid minute'],
  ['0 ? * * *', '"?" is not a valid hour'],
  ['0 25 * foo *', '"25" is not a valid hour (0 to 23), "foo" is not a valid month'],
  ['0 5* * * *', 'no field can be "5*"'],
  ['0 *,*5 * * *', 'no field can be "*,*5"'],
  ['0-9999999999 * * * *', 'no field can be "0-9999999999"'],
  ['$ * * * *', 'it contains characters that no field allows'],
  ['0 0 30 2 *', 'matches at least one date'],
  ['0 0 31 4,6 *', 'matches at least one date'],
  ['0 0 31W 2 *', 'matches at least one date'],
  ['0 0 1 1 1#2', 'matches at least one date'],
])('%j is rejected: %s', (expression, fault) => {
  expect(validateSchedule(expression)).toMatch(/^must be a cron expression/);
  expect(validateSchedule(expression)).toContain(fault);
});

it('more expressions than are kept have their own times, however often they are read', () => {
  for (let round = 0; round < 2; round += 1) {
    for (let n = 1; n < 150; n += 1) {
      const { nextAfter } = parseSchedule(`${n % 60} ${Math.floor(n / 60)} * * *`, 'UTC');
      expect(nextAfter(0)).toBe(n * 60_000);
    }
  }
});
