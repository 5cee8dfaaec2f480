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
        description: 'Duration of write transactions including fsync: median and 99th percentile.',
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
          'Failed write transactions and failed reads for scrapes, by reason. A change that is not committed is neither counted nor logged. With several workers also refused commits: another worker has owned the project since. A later poll finds the same changes.',
        unit: 'short',
        width: 8,
        alerts: ['EvalwatchStoreWriteFailing'],
      },
      [
        '{{reason}}',
        'sum by (reason) (increase(evalwatch_store_commit_failures_total[$__rate_interval])) > 0',
      ],
      ['refused', 'sum(increase(evalwatch_store_commits_refused_total[$__rate_interval])) > 0'],
    ),
    lines(
      {
        title: 'File sizes',
        description:
          'Size of the database and of its write-ahead log. The log shrinks at each checkpoint. An alert fires if it stays over 64 MiB.',
        unit: 'bytes',
        width: 8,
        alerts: ['EvalwatchStoreWALGrowing'],
      },
      ['{{instance}} database', 'max by (instance) (evalwatch_store_database_bytes)'],
      ['{{instance}} write-ahead log', 'max by (instance) (evalwatch_store_wal_bytes)'],
    ),
  ],
};
