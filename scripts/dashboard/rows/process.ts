import { areas, bars, lines } from '../charts.ts';
import type { Row } from '../panels.ts';
import { rate } from '../queries.ts';
import { SECONDS, table, yesOrNo } from '../tables.ts';

const JOB = '{job="evalwatch"}';

export const processes: Row = {
  title: 'Process',
  panels: [
    table(
      {
        title: 'Daemons',
        description:
          'Each instance: its version, uptime, and the result of its last configuration load. With several workers also the number of projects that each owns, and the time left of its lease.',
        unit: 'short',
        width: 24,
        height: 5,
        alerts: [
          'EvalwatchDown',
          'EvalwatchAbsent',
          'EvalwatchCrashLooping',
          'EvalwatchConfigReloadFailed',
          'EvalwatchProjectsUnowned',
          'EvalwatchWorkerLeaseLost',
        ],
      },
      {
        instance: 'Instance',
        version: 'Version',
        revision: 'Revision',
        node_version: 'Node',
        sqlite_version: 'SQLite',
        external_url: 'Page',
      },
      [
        {
          title: 'Build',
          expr: 'max by (instance, version, revision, node_version, sqlite_version) (evalwatch_build_info)',
          hidden: true,
        },
        {
          title: 'Address',
          expr: 'max by (instance, external_url) (evalwatch_web_info)',
          hidden: true,
        },
        {
          title: 'Scrape',
          expr: `max by (instance) (up${JOB})`,
          properties: yesOrNo('succeeded', 'failed'),
        },
        {
          title: 'Running for',
          expr: `time() - max by (instance) (process_start_time_seconds${JOB})`,
          properties: SECONDS,
        },
        {
          title: 'Last reload',
          expr: 'max by (instance) (evalwatch_config_last_reload_successful)',
          properties: yesOrNo('succeeded', 'failed'),
        },
        {
          title: 'Configuration loaded',
          expr: 'time() - max by (instance) (evalwatch_config_last_reload_success_timestamp_seconds)',
          properties: SECONDS,
        },
        {
          title: 'Projects configured',
          expr: 'max by (instance) (evalwatch_projects_configured)',
        },
        {
          title: 'Projects owned',
          expr: 'max by (instance) (evalwatch_worker_projects)',
        },
        {
          title: 'Lease left',
          expr: 'max by (instance) (evalwatch_worker_lease_expiry_timestamp_seconds) - time()',
          properties: SECONDS,
        },
      ],
    ).overrideByName('Page', [
      {
        id: 'links',
        value: [{ title: 'Status page', url: '${__value.raw:raw}/', targetBlank: true }],
      },
    ]),
    lines(
      {
        title: 'CPU',
        description: 'CPU time per second; 100 % is one core.',
        unit: 'percentunit',
        width: 6,
      },
      ['{{instance}}', rate(`process_cpu_seconds_total${JOB}`, 'instance')],
    ),
    lines(
      {
        title: 'Memory',
        description: 'Resident memory of the process, and the JavaScript heap within it.',
        unit: 'bytes',
        width: 6,
      },
      ['{{instance}} resident', `max by (instance) (process_resident_memory_bytes${JOB})`],
      ['{{instance}} heap', `max by (instance) (nodejs_heap_size_used_bytes${JOB})`],
    ),
    lines(
      {
        title: 'Event loop lag',
        description:
          'Delay of the event loop, 99th percentile. A blocked event loop delays polls and scrapes.',
        unit: 's',
        width: 6,
        alerts: ['EvalwatchSchedulerOverrun'],
      },
      ['{{instance}}', `max by (instance) (nodejs_eventloop_lag_p99_seconds${JOB})`],
    ),
    areas(
      {
        title: 'Log lines',
        description: 'Log lines written per second, by level.',
        unit: 'ops',
        width: 6,
      },
      ['{{level}}', rate('evalwatch_log_messages_total', 'level')],
    ),
    bars(
      {
        title: 'Messages',
        description:
          'Messages that receivers (notify) took, and those given up because a receiver took none for 24 hours.',
        unit: 'short',
        width: 12,
      },
      [
        '{{receiver}} {{outcome}}',
        'sum by (receiver, outcome) (increase(evalwatch_notifications_total[$__rate_interval])) > 0',
      ],
    ),
    lines(
      {
        title: 'Waiting messages',
        description:
          'How long the oldest message of each receiver has waited. Up to two minutes are usual, because messages are gathered. An alert fires after 15 minutes.',
        unit: 's',
        width: 12,
        alerts: ['EvalwatchNotificationFailing'],
      },
      [
        '{{receiver}}',
        'time() - min by (receiver) (evalwatch_notification_oldest_due_timestamp_seconds)',
      ],
    ),
  ],
};
