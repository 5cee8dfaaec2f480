/** `38 %`; `less than 1 %` and `more than 99 %` where rounding would say none or all. */
export function shareText(count: number, total: number): string {
  const percent = (count / total) * 100;
  if (percent > 0 && percent < 1) return 'less than 1 %';
  if (percent > 99 && percent < 100) return 'more than 99 %';
  return `${Math.round(percent)} %`;
}
