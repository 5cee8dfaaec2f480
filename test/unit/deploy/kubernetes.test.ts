import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../../support/temporary.ts';
import {
  CONFIG,
  image,
  loadInImage,
  type Manifest,
  readManifests,
  readText,
  readYaml,
} from './repository.ts';

type Labels = Readonly<Record<string, string>>;

interface ConfigMap extends Manifest {
  readonly data: Readonly<Record<string, string>>;
}

interface Volume {
  readonly name: string;
  readonly configMap?: { readonly name: string };
  readonly secret?: { readonly secretName: string; readonly defaultMode: number };
  readonly persistentVolumeClaim?: { readonly claimName: string };
}

interface Container {
  readonly image: string;
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly resources: { readonly requests: object; readonly limits: { readonly memory: string } };
  readonly [field: string]: unknown;
}

interface Deployment extends Manifest {
  readonly spec: {
    readonly replicas: number;
    readonly strategy: object;
    readonly selector: { readonly matchLabels: Labels };
    readonly template: {
      readonly metadata: { readonly labels: Labels; readonly annotations: Labels };
      readonly spec: {
        readonly containers: readonly [Container];
        readonly volumes: readonly Volume[];
        readonly [field: string]: unknown;
      };
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

const FILE = 'kubernetes/evalwatch.yaml';
const OPERATOR = 'kubernetes/prometheus-operator';
const manifests = readManifests(FILE);
const [configMap, claim, deployment, service, policy] = manifests as readonly [
  ConfigMap,
  Manifest,
  Deployment,
  Service,
  NetworkPolicy,
];
const [monitor] = readManifests(`${OPERATOR}/service-monitor.yaml`) as readonly [ServiceMonitor];
const [rule] = readManifests(`${OPERATOR}/prometheus-rule.yaml`) as readonly [
  Manifest & { readonly spec: unknown },
];
const { template } = deployment.spec;
const pod = template.spec;
const [container] = pod.containers;

describe('the manifests for Kubernetes', () => {
  it('are what is needed', () => {
    expect([...manifests, monitor, rule].map(({ kind }) => kind)).toEqual([
      'ConfigMap',
      'PersistentVolumeClaim',
      'Deployment',
      'Service',
      'NetworkPolicy',
      'ServiceMonitor',
      'PrometheusRule',
    ]);
  });

  it('say no namespace, so that any will do', () => {
    for (const { metadata } of [...manifests, monitor, rule]) {
      expect(metadata).toEqual({
        name: 'evalwatch',
        labels: { 'app.kubernetes.io/name': 'evalwatch' },
      });
    }
  });

  it('find the pod by its labels', () => {
    const { labels } = template.metadata;
    expect(labels).toMatchObject(deployment.spec.selector.matchLabels);
    expect(labels).toMatchObject(service.spec.selector);
    expect(labels).toMatchObject(policy.spec.podSelector.matchLabels);
  });

  it('run one daemon at a time, of this version', () => {
    expect(deployment.spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
    expect(container.image).toBe(image.name);
    // It may take 8 s to stop.
    expect(pod['terminationGracePeriodSeconds']).toBeGreaterThan(8);
  });

  it('agree on the port of the image', () => {
    expect(container.ports).toEqual([{ name: 'http', containerPort: image.port }]);
    expect(service.spec.ports).toEqual([{ name: 'http', port: image.port, targetPort: 'http' }]);
    expect(template.metadata.annotations).toEqual({
      'prometheus.io/scrape': 'true',
      'prometheus.io/port': String(image.port),
      'prometheus.io/path': '/metrics',
    });
  });

  it('give the daemon no right that it does not need', () => {
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: {
        runAsNonRoot: true,
        runAsUser: 1000,
        fsGroup: 1000,
        seccompProfile: { type: 'RuntimeDefault' },
      },
    });
    expect(container['securityContext']).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(container.resources).toMatchObject({
      requests: { cpu: expect.any(String), memory: expect.any(String) },
      limits: { memory: expect.any(String) },
    });
  });

  it.each([
    ['startupProbe', '/-/healthy'],
    ['livenessProbe', '/-/healthy'],
    ['readinessProbe', '/-/ready'],
  ])('%s asks %s', (probe, path) => {
    expect(container[probe]).toMatchObject({ httpGet: { path, port: 'http' } });
  });

  it('keep variables of the Service out of the environment', () => {
    expect(pod['enableServiceLinks']).toBe(false);
    const names = (container['env'] as { name: string }[]).map(({ name }) => name);
    expect(names).toEqual(['NODE_OPTIONS']);
  });

  it('let Prometheus in and names and https out, and nothing else', () => {
    const { spec } = policy;
    expect(spec.policyTypes).toEqual(['Ingress', 'Egress']);
    expect(spec.ingress.map(({ ports }) => ports.map(({ port }) => port))).toEqual([['http']]);
    expect(spec.egress.map(({ ports }) => ports.map(({ port }) => port))).toEqual([
      [53, 53],
      [443],
    ]);
  });
});

describe('the volumes of the pod', () => {
  /** Where the container sees the volume with this field. */
  function mountOf(field: keyof Volume): string {
    const volume = pod.volumes.find((each) => field in each);
    const mount = container.volumeMounts.find(({ name }) => name === volume?.name);
    if (mount === undefined) throw new Error(`no ${field} is mounted`);
    return mount.mountPath;
  }

  it('are mounted, each', () => {
    const mounted = container.volumeMounts.map(({ name }) => name);
    expect(mounted).toEqual(pod.volumes.map(({ name }) => name));
  });

  it('are of objects that are there', () => {
    const configMaps = pod.volumes.flatMap((each) => each.configMap?.name ?? []);
    expect(configMaps).toEqual([configMap.metadata.name]);
    const claims = pod.volumes.flatMap((each) => each.persistentVolumeClaim?.claimName ?? []);
    expect(claims).toEqual([claim.metadata.name]);
  });

  it('keep the store where the image has it', () => {
    expect(mountOf('persistentVolumeClaim')).toBe(dirname(image.env['EVALWATCH_STORE_PATH'] ?? ''));
  });

  it('hold a configuration that the daemon takes, where it looks for it', async () => {
    const name = 'evalwatch.yaml';
    expect(join(mountOf('configMap'), name)).toBe(image.env['EVALWATCH_CONFIG']);
    await using directory = await temporaryDirectory();
    const file = join(directory.path, name);
    await writeFile(file, configMap.data[name] ?? '');
    const config = await loadInImage(file);
    const [, secretName, key = ''] =
      /kubectl create secret generic (\S+) --from-file=(\S+)/.exec(readText(`config/${FILE}`)) ??
      [];
    const [secret] = pod.volumes.flatMap((each) => each.secret ?? []);
    expect(secret).toEqual({ secretName, defaultMode: 0o440 });
    expect(config.projects.map((project) => project.key)).toEqual([
      { file: join(mountOf('secret'), key) },
    ]);
  });
});

describe('for the Prometheus Operator', () => {
  it('the monitor finds the Service and names the job that the alerts ask for', () => {
    const { selector, jobLabel, endpoints } = monitor.spec;
    expect(service.metadata.labels).toMatchObject(selector.matchLabels);
    expect(service.metadata.labels[jobLabel]).toBe('evalwatch');
    expect(endpoints.map(({ port }) => port)).toEqual([service.spec.ports[0].name]);
  });

  it('the monitor leaves the label endpoint to the metrics that have one', () => {
    expect(monitor.spec.endpoints[0].honorLabels).toBe(true);
  });

  it('the rules are the shipped ones', () => {
    expect(rule.spec).toEqual(readYaml('prometheus/evalwatch.rules.yml'));
  });

  it('the rules are as their generator writes them', { timeout: 60_000 }, async () => {
    const script = join(CONFIG, '../scripts/generate-prometheus-rule.ts');
    await expect(promisify(execFile)(process.execPath, [script, '--check'])).resolves.toBeDefined();
  });
});
