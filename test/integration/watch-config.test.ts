import { mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startHere } from '../support/daemon-here.ts';
import { sleep, UNHURRIED, workspace } from '../support/evalwatch.ts';
import { scrape } from '../support/scrape.ts';
import { startAlpha } from '../support/service.ts';

const WATCHING = { watchConfig: true, speed: 4 };

/** Sets up a service and a workspace; `withProjects` returns a configuration with these projects. */
async function watching() {
  await using opened = new AsyncDisposableStack();
  const service = opened.use(await startAlpha());
  const place = opened.use(await workspace(service.url));
  const config = JSON.parse(await readFile(place.config, 'utf8')) as object;
  const withProjects = (...ids: readonly string[]) =>
    JSON.stringify({ ...config, projects: ids.map((id) => ({ id })) });
  return { place, service, withProjects, opened: opened.move() };
}

describe('a daemon that watches its configuration', UNHURRIED, () => {
  it('applies a file that is written in place, replaced by a rename, or briefly missing', async () => {
    const { place, withProjects, opened } = await watching();
    await using _ = opened;
    await using daemon = await startHere(place, WATCHING);
    await daemon.line('project.baseline', { project: 'alpha' });

    await writeFile(place.config, withProjects('alpha', 'beta'));
    const first = await daemon.line('config.reloaded');
    expect(first).toMatchObject({ level: 'info', added: ['beta'], removed: [], changed: [] });
    await daemon.line('project.baseline', { project: 'beta' });

    const draft = join(place.directory, '.evalwatch.yaml.swp');
    await writeFile(draft, withProjects('alpha', 'gamma'));
    await rename(draft, place.config);
    await daemon.line('project.baseline', { project: 'gamma' });

    const before = daemon.lines.length;
    await rm(place.config);
    await sleep(100);
    await writeFile(place.config, withProjects('alpha'));
    const line = await daemon.line('config.reloaded', {}, before);
    expect(line).toMatchObject({ removed: ['gamma'] });
    expect(daemon.of('config.reload_failed')).toEqual([]);
    await daemon.stop();
  });

  it('applies the swapped symlink of a ConfigMap', async () => {
    const { place, withProjects, opened } = await watching();
    await using _ = opened;
    const { directory } = place;
    const mount = async (version: string, text: string) => {
      await mkdir(join(directory, version));
      await writeFile(join(directory, version, 'evalwatch.yaml'), text);
      await symlink(version, join(directory, '..data_tmp'));
      await rename(join(directory, '..data_tmp'), join(directory, '..data'));
    };
    await mount('..v1', withProjects('alpha'));
    await rm(place.config);
    await symlink(join('..data', 'evalwatch.yaml'), place.config);
    await using daemon = await startHere(place, WATCHING);
    await daemon.line('project.baseline', { project: 'alpha' });

    await mount('..v2', withProjects('alpha', 'beta'));
    await rm(join(directory, '..v1'), { recursive: true });
    await daemon.line('project.baseline', { project: 'beta' });
    expect(daemon.of('config.reload_failed')).toEqual([]);
  });

  it('reports an invalid file once, keeps the old configuration and recovers with it', async () => {
    const { place, withProjects, opened } = await watching();
    await using _ = opened;
    await using daemon = await startHere(place, WATCHING);
    const url = await daemon.url();

    await writeFile(place.config, withProjects('alpha', '.'));
    const line = await daemon.line('config.reload_failed');
    expect(line).toMatchObject({ level: 'error', reasons: [expect.stringContaining('projects')] });
    // More than two further checks.
    await sleep(1500);
    const after = await scrape(url);
    expect(after.value('evalwatch_config_last_reload_successful')).toBe(0);
    expect(after.value('evalwatch_project_up{project="alpha"}')).toBe(1);
    expect(daemon.of('config.reload_failed')).toHaveLength(1);

    const before = daemon.lines.length;
    await writeFile(place.config, withProjects('alpha', '..'));
    await daemon.line('config.reload_failed', {}, before);

    await writeFile(place.config, withProjects('alpha'));
    expect(await daemon.line('config.reloaded')).toMatchObject({ added: [], removed: [] });
    expect((await scrape(url)).value('evalwatch_config_last_reload_successful')).toBe(1);
  });

  it('does not reload a file again that SIGHUP has applied', async () => {
    const { place, withProjects, opened } = await watching();
    await using _ = opened;
    await using daemon = await startHere(place, WATCHING);
    await daemon.line('project.baseline', { project: 'alpha' });

    await writeFile(place.config, withProjects('alpha', 'beta'));
    await daemon.reload();
    await daemon.line('project.baseline', { project: 'beta' });
    // On a busy machine it may have been applied before the reload.
    const applied = daemon.of('config.reloaded').length;
    await sleep(1500);
    expect(daemon.of('config.reloaded')).toHaveLength(applied);
  });
});
