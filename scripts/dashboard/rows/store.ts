import { bars, lines } from '../charts.ts';
import type { Row } from '../panels.ts';
import { quantile } from '../queries.ts';

const COMMIT = 'evalwatch_store_commit_duration_seconds';

export const store: Row = {
  title: 'Store',
  panels: [
    lines(
      {
        title: 'Commit duration',
        description: 'Time of write transactions, fsync included: median and 99th percentile.',
        unit: 's',
        width: 8,
      },
      ['median', quantile(0.5, COMMIT)],
      ['99 %', quantile(0.99, COMMIT)],
    ),
    bars(
      {
        title: 'Failed commits',
        description:
          'Write transactions that failed, and reads for a scrape, by reason. What could not be committed is neither counted nor logged as having happened. Of several workers also those that were refused because another one owned the project by then (epoch) or was faster (version): these are polled again.',
        unit: 'short',
        width: 8,
        alerts: ['EvalwatchStoreWriteFailing'],
      },
      [
        '{{reason}}',
        'sum by (reason) (increase(evalwatch_store_commit_failures_total[$__rate_interval])) > 0',
      ],
      [
        'refused: {{reason}}',
        'sum by (reason) (increase(evalwatch_store_commits_refused_total[$__rate_interval])) > 0',
      ],
    ),
    lines(
      {
        title: 'File sizes',
        description:
          'Size of the database and of its write-ahead log. The log shrinks at every checkpoint; an alert fires if it stays over 64 MiB.',
        unit: 'bytes',
        width: 8,
        alerts: ['EvalwatchStoreWALGrowing'],
      },
      ['{{instance}} database', 'max by (instance) (evalwatch_store_database_bytes)'],
      ['{{instance}} write-ahead log', 'max by (instance) (evalwatch_store_wal_bytes)'],
    ),
  ],
};
