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
import { described, targetsOf, thresholds, type About, type Query, type Step } from './panels.ts';

const TOOLTIP = { mode: TooltipDisplayMode.Multi, sort: SortOrder.Descending };

/** Lines over time. */
export function lines(about: About, ...queries: readonly Query[]): TimeSeriesBuilder {
  return described(new TimeSeriesBuilder(), about)
    .targets([...targetsOf(queries)])
    .min(0)
    .lineWidth(1)
    .fillOpacity(5)
    .legend(new VizLegendOptionsBuilder().showLegend(true))
    .tooltip({ build: () => TOOLTIP });
}

/** Areas one above the other. */
export function areas(about: About, ...queries: readonly Query[]): TimeSeriesBuilder {
  return lines(about, ...queries)
    .fillOpacity(50)
    .stacking(new StackingConfigBuilder().mode(StackingMode.Normal).group('A'));
}

/**
 * What was counted in each interval, as bars. An interval is a minute or more, so that it holds several scrapes; where
 * nothing happened there is nothing to draw.
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

/** Figures as they are now. */
export function figures(about: About, ...queries: readonly Query[]): StatBuilder {
  return described(new StatBuilder(), about)
    .targets(targetsOf(queries).map((query) => query.instant()))
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(['lastNotNull']))
    .colorMode(BigValueColorMode.Value)
    .graphMode(BigValueGraphMode.None);
}

/** How the observations of a histogram spread over time; `about.unit` is theirs. */
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
