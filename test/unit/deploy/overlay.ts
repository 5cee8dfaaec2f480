import { render } from './kustomize.ts';
import type { Manifest } from './repository.ts';

type Labels = Readonly<Record<string, string>>;

interface Volume {
  readonly name: string;
  readonly configMap?: { readonly name: string };
  readonly secret?: { readonly secretName: string; readonly defaultMode: number };
  readonly persistentVolumeClaim?: { readonly claimName: string };
}

interface Container {
  readonly image: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string }[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly resources: { readonly requests: object; readonly limits: { readonly memory: string } };
  readonly [field: string]: unknown;
}

export interface Pod {
  readonly containers: readonly [Container];
  readonly volumes: readonly Volume[];
  readonly topologySpreadConstraints?: readonly object[];
  readonly terminationGracePeriodSeconds: number;
  readonly [field: string]: unknown;
}

interface ConfigMap extends Manifest {
  readonly data: Readonly<Record<string, string>>;
}

interface Deployment extends Manifest {
  readonly spec: {
    readonly replicas: number;
    readonly strategy: object;
    readonly selector: { readonly matchLabels: Labels };
    readonly template: {
      readonly metadata: { readonly labels: Labels; readonly annotations: Labels };
      readonly spec: Pod;
    };
  };
}

interface Service extends Manifest {
  readonly spec: {
    readonly selector: Labels;
    readonly ports: readonly [
      { readonly name: string; readonly port: number; readonly targetPort: string },
    ];
  };
}

interface NetworkPolicy extends Manifest {
  readonly spec: {
    readonly podSelector: { readonly matchLabels: Labels };
    readonly policyTypes: readonly string[];
    readonly ingress: readonly [{ readonly ports: readonly [{ readonly port: string }] }];
    readonly egress: readonly { readonly ports: readonly { readonly port: number }[] }[];
  };
}

interface ServiceMonitor extends Manifest {
  readonly spec: {
    readonly selector: { readonly matchLabels: Labels };
    readonly jobLabel: string;
    readonly endpoints: readonly [{ readonly port: string; readonly honorLabels: boolean }];
  };
}

interface Kinds {
  readonly ConfigMap: ConfigMap;
  readonly Deployment: Deployment;
  readonly NetworkPolicy: NetworkPolicy;
  readonly PersistentVolumeClaim: Manifest;
  readonly PodDisruptionBudget: Manifest;
  readonly PrometheusRule: Manifest & { readonly spec: unknown };
  readonly Service: Service;
  readonly ServiceMonitor: ServiceMonitor;
}

/** Objects that `kubectl apply -k` sends to the cluster. */
export interface Overlay {
  readonly manifests: readonly Manifest[];
  /** Kind and name of each object, sorted. */
  readonly names: readonly string[];
  readonly get: <Kind extends keyof Kinds>(kind: Kind, name?: string) => Kinds[Kind];
  readonly deployment: Deployment;
  readonly pod: Pod;
  readonly container: Container;
  /** Returns the mount path of the volume with this field. */
  readonly mountOf: (field: keyof Volume) => string;
}

export async function renderOverlay(...args: Parameters<typeof render>): Promise<Overlay> {
  const manifests = await render(...args);
  const get: Overlay['get'] = (kind, name = 'evalwatch') => {
    const found = manifests.find((each) => each.kind === kind && each.metadata.name === name);
    if (found === undefined) throw new Error(`no ${kind} ${name}`);
    return found as Kinds[typeof kind];
  };
  return {
    manifests,
    names: manifests.map(({ kind, metadata }) => `${kind} ${metadata.name}`).toSorted(),
    get,
    get deployment() {
      return get('Deployment');
    },
    get pod() {
      return get('Deployment').spec.template.spec;
    },
    get container() {
      return get('Deployment').spec.template.spec.containers[0];
    },
    mountOf: (field) => {
      const { containers, volumes } = get('Deployment').spec.template.spec;
      const volume = volumes.find((each) => field in each);
      const mount = containers[0].volumeMounts.find(({ name }) => name === volume?.name);
      if (mount === undefined) throw new Error(`no ${field} is mounted`);
      return mount.mountPath;
    },
  };
}
