import { areas, lines } from '../charts.ts';
import type { Row } from '../panels.ts';
import { quantile, rate } from '../queries.ts';

const DURATION = 'evalwatch_api_request_duration_seconds';
const RESPONSES = 'evalwatch_api_requests_total';

export const api: Row = {
  title: 'Evaluation Service',
  panels: [
    areas(
      {
        title: 'Responses',
        description: 'Responses of the Evaluation Service per second, by endpoint and status code.',
        unit: 'reqps',
        width: 12,
      },
      ['{{endpoint}} {{code}}', `${rate(RESPONSES, 'endpoint, code')} > 0`],
    ),
    areas(
      {
        title: 'Errors and retries',
        description:
          'Responses other than 200 and 304, requests without a usable response (by reason), and retries, per second.',
        unit: 'reqps',
        width: 12,
        alerts: ['EvalwatchAuthFailing', 'EvalwatchProjectPollFailing'],
      },
      ['{{endpoint}} {{code}}', `${rate(`${RESPONSES}{code!~"200|304"}`, 'endpoint, code')} > 0`],
      [
        '{{endpoint}} {{reason}}',
        `${rate('evalwatch_api_request_failures_total', 'endpoint, reason')} > 0`,
      ],
      ['{{endpoint}} sent again', `${rate('evalwatch_api_retries_total', 'endpoint')} > 0`],
    ).noValue('None'),
    lines(
      {
        title: 'Request duration',
        description: 'Duration of a request including its body: median and 95th percentile.',
        unit: 's',
        width: 8,
      },
      ['{{endpoint}} median', quantile(0.5, DURATION, 'endpoint')],
      ['{{endpoint}} 95 %', quantile(0.95, DURATION, 'endpoint')],
    ),
    lines(
      {
        title: 'Bytes read',
        description: 'Bytes of response bodies per second, after decompression.',
        unit: 'Bps',
        width: 8,
      },
      ['{{endpoint}}', rate('evalwatch_api_response_bytes_total', 'endpoint')],
    ),
    lines(
      {
        title: 'error_info fetches',
        description:
          'Attempts per second to fetch the error_info of a failed prompt, and failed attempts.',
        unit: 'ops',
        width: 8,
        alerts: ['EvalwatchErrorInfoBacklog'],
      },
      ['attempts', rate('evalwatch_error_info_fetches_total')],
      ['failed', rate('evalwatch_error_info_fetch_failures_total')],
    ),
  ],
};
