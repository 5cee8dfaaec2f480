import type { HttpEvaluationService } from './client.ts';

/** Evaluation Service whose implementation a reload can replace. */
export interface ReplaceableService extends HttpEvaluationService {
  /** Directs new calls to `next`. Running calls end with the old service, which is then closed. */
  replace(next: HttpEvaluationService): void;
}

export function createReplaceableService(first: HttpEvaluationService): ReplaceableService {
  const uses = new Map<HttpEvaluationService, number>([[first, 0]]);
  let current = first;

  function closeIfUnused(service: HttpEvaluationService): void {
    if (service === current || uses.get(service) !== 0) return;
    uses.delete(service);
    void service.close();
  }

  async function using<T>(call: (service: HttpEvaluationService) => Promise<T>): Promise<T> {
    const service = current;
    uses.set(service, (uses.get(service) ?? 0) + 1);
    try {
      return await call(service);
    } finally {
      uses.set(service, (uses.get(service) ?? 1) - 1);
      closeIfUnused(service);
    }
  }

  return {
    list: (...args) => using((service) => service.list(...args)),
    getErrorInfo: (...args) => using((service) => service.getErrorInfo(...args)),
    renewConnections: () => current.renewConnections(),
    replace: (next) => {
      const old = current;
      current = next;
      uses.set(next, 0);
      closeIfUnused(old);
    },
    close: async () => {
      await Promise.all([...uses.keys()].map((service) => service.close()));
    },
  };
}
