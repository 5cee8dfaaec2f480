import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { Config } from '../../../src/config/config.ts';
import { temporaryDirectory } from '../../support/temporary.ts';
import { canRender, isOldKubectl } from './kustomize.ts';
import { renderOverlay, type Overlay, type Pod } from './overlay.ts';
import { image, loadInImage, readText } from './repository.ts';

// Tests what `kubectl apply -k` sends, rendered by kubectl.

const NAME = 'evalwatch';
const LABELS = { 'app.kubernetes.io/name': NAME };

let daemon: Overlay;
let workers: Overlay;
let operator: Overlay;
/** Long, because kubectl may have to be installed. */
const MAX_RENDER_MS = 200_000;
beforeAll(async () => {
  if (!canRender) return;
  daemon = await renderOverlay('kubernetes/overlays/daemon');
  workers = await renderOverlay('kubernetes/overlays/workers');
  operator = await renderOverlay('kubernetes/overlays/prometheus-operator');
}, MAX_RENDER_MS);

const STORES = [
  ['daemon', () => daemon],
  ['workers', () => workers],
] as const;

/** Loads the configuration of an overlay as the daemon does. */
async function configOf(overlay: Overlay): Promise<Config> {
  await using directory = await temporaryDirectory();
  const file = join(directory.path, 'evalwatch.yaml');
  await writeFile(file, overlay.get('ConfigMap').data['evalwatch.yaml'] ?? '');
  return await loadInImage(file);
}

describe.skipIf(!canRender)('every overlay for Kubernetes', () => {
  it('has the expected objects, with the names of earlier versions', () => {
    const both = ['ConfigMap', 'Deployment', 'NetworkPolicy', 'Service'];
    const named = (kinds: readonly string[]) => kinds.map((kind) => `${kind} ${NAME}`);
    expect(daemon.names).toEqual(named([...both, 'PersistentVolumeClaim']).toSorted());
    expect(workers.names).toEqual(
      [...named([...both, 'PodDisruptionBudget']), 'NetworkPolicy evalwatch-postgres'].toSorted(),
    );
    expect(operator.names).toEqual([
      'ConfigMap evalwatch-dashboard',
      `PrometheusRule ${NAME}`,
      `ServiceMonitor ${NAME}`,
    ]);
  });

  it('sets no namespace, and labels every object', () => {
    for (const { manifests } of [daemon, workers, operator]) {
      for (const { metadata } of manifests) {
        expect(metadata.namespace).toBeUndefined();
        expect(metadata.labels).toMatchObject(LABELS);
      }
    }
  });
});

describe.skipIf(!canRender).each(STORES)('the overlay %s', (name, overlay) => {
  it('selects pods by the labels of earlier versions, because a selector cannot change', () => {
    const { deployment, get } = overlay();
    expect(deployment.spec.selector).toEqual({ matchLabels: LABELS });
    expect(deployment.spec.template.metadata.labels).toEqual(LABELS);
    expect(get('Service').spec.selector).toEqual(LABELS);
    expect(get('NetworkPolicy').spec.podSelector).toEqual({ matchLabels: LABELS });
  });

  it('runs this version, and applies a changed ConfigMap without a restart', () => {
    const { container } = overlay();
    expect(container.image).toBe(image.name);
    expect(container.args).toEqual(['run', '--watch-config']);
  });

  it('uses the port of the image in container, Service and scrape annotations', () => {
    const { container, deployment, get } = overlay();
    expect(container.ports).toEqual([{ name: 'http', containerPort: image.port }]);
    expect(get('Service').spec.ports).toEqual([
      { name: 'http', port: image.port, targetPort: 'http' },
    ]);
    expect(deployment.spec.template.metadata.annotations).toEqual({
      'prometheus.io/scrape': 'true',
      'prometheus.io/port': String(image.port),
      'prometheus.io/path': '/metrics',
    });
  });

  it('runs as a non-root user without privileges, with resource requests and a memory limit', () => {
    const { container, pod } = overlay();
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
  ])('%s requests %s', (probe, path) => {
    expect(overlay().container[probe]).toMatchObject({ httpGet: { path, port: 'http' } });
  });

  it('has a termination grace period of 30 s', () => {
    expect(overlay().pod.terminationGracePeriodSeconds).toBe(30);
  });

  it('has no environment variables of Services, only NODE_OPTIONS', () => {
    const { container, pod } = overlay();
    expect(pod['enableServiceLinks']).toBe(false);
    expect(container.env.map((variable) => variable.name)).toEqual(['NODE_OPTIONS']);
  });

  it('allows only ingress to its http port and egress to ports 53 and 443', () => {
    const { spec } = overlay().get('NetworkPolicy');
    expect(spec.policyTypes).toEqual(['Ingress', 'Egress']);
    expect(spec.ingress.map(({ ports }) => ports.map(({ port }) => port))).toEqual([['http']]);
    expect(spec.egress.map(({ ports }) => ports.map(({ port }) => port))).toEqual([
      [53, 53],
      [443],
    ]);
  });

  it('mounts every volume, and refers only to existing objects', () => {
    const { container, pod, get } = overlay();
    expect(container.volumeMounts.map((mount) => mount.name).toSorted()).toEqual(
      pod.volumes.map((volume) => volume.name).toSorted(),
    );
    for (const { configMap, persistentVolumeClaim } of pod.volumes) {
      if (configMap) get('ConfigMap', configMap.name);
      if (persistentVolumeClaim) get('PersistentVolumeClaim', persistentVolumeClaim.claimName);
    }
  });

  it('mounts a valid configuration where the image reads it, with the Secret that its comments create', async () => {
    const { mountOf, pod } = overlay();
    expect(join(mountOf('configMap'), 'evalwatch.yaml')).toBe(image.env['EVALWATCH_CONFIG']);
    const config = await configOf(overlay());
    const text = readText(`config/kubernetes/overlays/${name}/kustomization.yaml`);
    const [, secretName] = /kubectl create secret generic (\S+)/.exec(text) ?? [];
    const created = [...text.matchAll(/--from-file=secrets\/(\S+)/g)].map(([, key = '']) =>
      join(mountOf('secret'), key),
    );
    const [secret] = pod.volumes.flatMap((each) => each.secret ?? []);
    expect(secret).toEqual({ secretName, defaultMode: 0o440 });
    const url = 'postgresUrl' in config.store ? [config.store.postgresUrl] : [];
    expect([...config.projects.map((project) => project.key), ...url]).toEqual(
      created.map((file) => ({ file })),
    );
  });
});

describe.skipIf(!canRender)('one daemon in Kubernetes', () => {
  it('never runs twice: one replica, strategy Recreate', () => {
    expect(daemon.deployment.spec).toMatchObject({ replicas: 1, strategy: { type: 'Recreate' } });
  });

  it('mounts its volume at the store path of the image', () => {
    expect(daemon.mountOf('persistentVolumeClaim')).toBe(
      dirname(image.env['EVALWATCH_STORE_PATH'] ?? ''),
    );
  });
});

/** Returns the parts of a pod that do not depend on its store. */
function common(pod: Pod): object {
  const { topologySpreadConstraints: _, containers, volumes, ...others } = pod;
  const [{ volumeMounts, ...container }] = containers;
  const isKept = (each: { readonly name: string }) => !['data', 'tmp'].includes(each.name);
  return {
    ...others,
    container,
    mounts: volumeMounts.filter(isKept),
    volumes: volumes.filter(isKept),
  };
}

describe.skipIf(!canRender)('several workers in Kubernetes', () => {
  it('equal the single daemon, except for its volume and the spreading of pods', () => {
    expect(workers.get('Service')).toEqual(daemon.get('Service'));
    expect(workers.get('NetworkPolicy')).toEqual(daemon.get('NetworkPolicy'));
    expect(common(workers.pod)).toEqual(common(daemon.pod));
  });

  it('use a PostgreSQL store', async () => {
    expect((await configOf(workers)).store).toHaveProperty('postgresUrl');
  });
});

describe.skipIf(!canRender)('the overlay for the Prometheus Operator', () => {
  it('has a ServiceMonitor that selects the Service and sets the job to evalwatch', () => {
    const { selector, jobLabel, endpoints } = operator.get('ServiceMonitor').spec;
    const service = daemon.get('Service');
    expect(service.metadata.labels).toMatchObject(selector.matchLabels);
    expect(service.metadata.labels[jobLabel]).toBe(NAME);
    expect(endpoints.map(({ port }) => port)).toEqual([service.spec.ports[0].name]);
  });

  it('has a ServiceMonitor that honors the labels of the metrics', () => {
    expect(operator.get('ServiceMonitor').spec.endpoints[0].honorLabels).toBe(true);
  });

  it('has the shipped dashboard, with the label for Grafana sidecars, below 200 kB', () => {
    const { data, metadata } = operator.get('ConfigMap', 'evalwatch-dashboard');
    expect(metadata.labels['grafana_dashboard']).toBe('1');
    const shipped = readText('config/grafana/dashboards/evalwatch.json');
    expect(data).toEqual({ 'evalwatch.json': shipped });
    // kubectl keeps what it applied in an annotation of at most 256 KiB.
    expect(shipped.length).toBeLessThan(200_000);
  });
});

describe.skipIf(!canRender)('the example kustomization in docs/operations.md', () => {
  it('changes image, namespace, labels and configuration', async () => {
    const [, text = ''] =
      /```yaml\n# kustomization\.yaml[^\n]*\n(.*?)```/s.exec(readText('docs/operations.md')) ?? [];
    const { resources } = parse(text) as { readonly resources: readonly string[] };
    const local = resources.map((address) => /overlays\/[\w-]+/.exec(address)?.[0] ?? '');
    const mine = await renderOverlay('kubernetes', {
      'kustomization.yaml': resources.reduce(
        (all, address, index) => all.replace(address, local[index] ?? ''),
        text,
      ),
      'evalwatch.yaml': 'mine: true\n',
    });
    expect(mine.names).toEqual([...daemon.names, ...operator.names].toSorted());
    expect(mine.container.image).toBe(`registry.example.com/${image.name}`);
    expect(mine.get('ConfigMap').data).toEqual({ 'evalwatch.yaml': 'mine: true\n' });
    for (const { metadata } of mine.manifests) expect(metadata.namespace).toBe('evaluations');
    const { metadata } = mine.get('ServiceMonitor');
    expect(metadata.labels['release']).toBe(isOldKubectl ? undefined : 'kube-prometheus-stack');
    expect(mine.deployment.spec.selector).toEqual({ matchLabels: LABELS });
  });
});
