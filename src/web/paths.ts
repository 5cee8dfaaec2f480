/** Paths of the HTTP interface that limits, logins or other programs depend on (docs/specification.md#endpoints). */
export const PATHS = {
  healthy: '/-/healthy',
  ready: '/-/ready',
  reload: '/-/reload',
  poll: '/-/poll',
  metrics: '/metrics',
  api: '/api/v1',
  events: '/api/v1/events',
} as const;
