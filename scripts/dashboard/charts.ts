import {
  BigValueColorMode,
  BigValueGraphMode,
  GraphDrawStyle,
  GraphThresholdsStyleConfigBuilder,
  GraphThresholdsStyleMode,
  ReduceDataOptionsBuilder,
  SortOrder,
  StackingConfigBuilder,
  StackingMode,
  TooltipDisplayMode,
  VizLegendOptionsBuilder,
} from '@grafana/grafana-foundation-sdk/common';
import {
  PanelBuilder as HeatmapBuilder,
  YAxisConfigBuilder,
} from '@grafana/grafana-foundation-sdk/heatmap';
import { PromQueryFormat } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as TimeSeriesBuilder } from '@grafana/grafana-foundation-sdk/timeseries';
import {
  described,
  link,
  projectPage,
  targetsOf,
  thresholds,
  type About,
  type Query,
  type Step,
} from './panels.ts';

const TOOLTIP = { mode: TooltipDisplayMode.Multi, sort: SortOrder.Descending };

/** Draws lines over time. Lines of projects link to their pages. */
export function lines(about: About, ...queries: readonly Query[]): TimeSeriesBuilder {
  const panel = described(new TimeSeriesBuilder(), about)
    .targets([...targetsOf(queries)])
    .min(0)
    .lineWidth(1)
    .fillOpacity(5)
    .legend(new VizLegendOptionsBuilder().showLegend(true))
    .tooltip({ build: () => TOOLTIP });
  const isByProject = queries.some(([legend]) => legend.includes('{{project}}'));
  const { title, url } = projectPage('__field.labels.project');
  return isByProject ? panel.dataLinks([link(title, url)]) : panel;
}

/** Draws stacked areas. */
export function areas(about: About, ...queries: readonly Query[]): TimeSeriesBuilder {
  return lines(about, ...queries)
    .fillOpacity(50)
    .stacking(new StackingConfigBuilder().mode(StackingMode.Normal).group('A'));
}

/**
 * Draws the count of each interval as a bar. An interval is a minute or longer, so that it contains several scrapes.
 * Intervals with a count of 0 have no bar.
 */
export function bars(about: About, ...queries: readonly Query[]): TimeSeriesBuilder {
  return areas(about, ...queries)
    .drawStyle(GraphDrawStyle.Bars)
    .fillOpacity(80)
    .interval('1m')
    .decimals(0)
    .noValue('None');
}

/** Adds dashed lines at these values. */
export function limits(panel: TimeSeriesBuilder, ...steps: readonly Step[]): TimeSeriesBuilder {
  return panel
    .thresholds(thresholds(...steps))
    .thresholdsStyle(new GraphThresholdsStyleConfigBuilder().mode(GraphThresholdsStyleMode.Dashed));
}

/** Shows current values. */
export function figures(about: About, ...queries: readonly Query[]): StatBuilder {
  return described(new StatBuilder(), about)
    .targets(targetsOf(queries).map((query) => query.instant()))
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(['lastNotNull']))
    .colorMode(BigValueColorMode.Value)
    .graphMode(BigValueGraphMode.None);
}

/** Draws a histogram over time as a heat map. `about.unit` is the unit of its observations. */
export function heatmap(about: About, expr: string): HeatmapBuilder {
  const targets = targetsOf([['{{le}}', expr]]).map((query) =>
    query.format(PromQueryFormat.Heatmap),
  );
  return described(new HeatmapBuilder(), about)
    .targets(targets)
    .interval('1m')
    .yAxis(new YAxisConfigBuilder().unit(about.unit))
    .showLegend();
}
