import * as fc from 'fast-check';

function field(min: number, max: number): fc.Arbitrary<string> {
  const value = fc.integer({ min, max });
  const step = fc.integer({ min: 1, max: max - min });
  return fc.oneof(
    fc.constant('*'),
    value.map(String),
    step.map((by) => `*/${by}`),
    fc.tuple(value, value).map(([from, to]) => `${from}-${to}`),
    fc.tuple(value, value, step).map(([from, to, by]) => `${from}-${to}/${by}`),
    fc.array(value, { minLength: 2, maxLength: 4 }).map((values) => values.join(',')),
  );
}

const daysOfMonth = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('*', '?', 'L', 'L-3', '15W', '1W', '31W', 'LW', '1,L') },
  field(1, 28),
);
const weekdays = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('*', '?', 'mon-fri', '5L', '0#1', 'tue#2', '7', '1,5L') },
  field(0, 6),
);

/** Expressions that node-cron accepts and that run now and then: day of month and weekday are not both narrow. */
export const expressions: fc.Arbitrary<string> = fc
  .tuple(
    fc.option(field(0, 59), { nil: undefined }),
    field(0, 59),
    field(0, 23),
    fc.oneof(
      daysOfMonth.map((day) => ({ day, weekday: '*' })),
      weekdays.map((weekday) => ({ day: '*', weekday })),
      weekdays.map((weekday) => ({ day: '1-28', weekday })),
    ),
    fc.oneof(fc.constant('*'), fc.constantFrom('jan', 'mar-may', '2,3,10', '*/2', '12')),
  )
  .map(([second, minute, hour, { day, weekday }, month]) =>
    [...(second === undefined ? [] : [second]), minute, hour, day, month, weekday].join(' '),
  );

/** Minutes and hours of few or many runs a day, second 0. */
export const timeFields: fc.Arbitrary<string> = fc
  .tuple(
    fc.constantFrom('0', '30', '*/7', '*', '15,45', '59'),
    fc.oneof(fc.constantFrom('*', '2', '0-23', '1-3', '*/2', '0', '23', '2,14'), field(0, 23)),
  )
  .map((fields) => fields.join(' '));

/** Days that come several times a year. */
export const dayFields: fc.Arbitrary<string> = fc.constantFrom(
  '* * *',
  '* * 1-5',
  '* * 0',
  '* * 6',
  'L * *',
  '15W * *',
  '* * 5#2',
  '* * 0L',
  '1,15 * *',
  '* 3,10 *',
  '31 * *',
  '1 3,9 *',
);
