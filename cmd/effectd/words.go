package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/effectd/effectd/events"
	"github.com/effectd/effectd/events/wire"
)

// stateWords says where an effect stands, and what holds it there.
func stateWords(x *wire.Effect) string {
	switch x.State {
	case wire.StatePrepared:
		if x.Permit != nil && x.Permit.State == wire.PermitPendingState {
			return "prepared, waits for approval"
		}
		return "prepared"
	case wire.StatePermitted:
		return "permitted, not admitted"
	case wire.StateAdmitted:
		return "admitted, waits to be sent"
	case wire.StateDispatched:
		return "dispatched, no answer yet"
	case wire.StateRefused:
		return "refused: " + string(x.Reason)
	case wire.StateUnknown:
		if x.Unknown != nil {
			return "unknown: " + string(x.Unknown.Reason)
		}
	case wire.StateSettled:
		return "settled: " + outcomeWords(x.Outcome, x.Means)
	}
	return string(x.State)
}

func outcomeWords(o events.Outcome, m events.Means) string {
	if m == events.MeansAccepted {
		return string(o) + " (accepted, not yet done)"
	}
	return string(o)
}

// amountsText is "calls 1, usd_cents 500".
func amountsText(a events.Amounts) string {
	parts := make([]string, 0, len(a))
	for _, u := range slices.Sorted(maps.Keys(a)) {
		parts = append(parts, string(u)+" "+strconv.FormatInt(a[u], 10))
	}
	return strings.Join(parts, ", ")
}

// duration is a length of time as people say it: two units at most.
func duration(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + duration(-d)
	case d == 0:
		return "0 ms"
	case d < time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Truncate(100*time.Millisecond).Seconds())
	}
	return parted(d.Truncate(time.Second))
}

func parted(d time.Duration) string {
	units := []struct {
		name string
		size time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}}
	for i, u := range units {
		if d < u.size {
			continue
		}
		text := fmt.Sprintf("%d %s", d/u.size, u.name)
		if rest := d % u.size; i+1 < len(units) && rest >= units[i+1].size {
			text += fmt.Sprintf(" %d %s", rest/units[i+1].size, units[i+1].name)
		}
		return text
	}
	return "0 s"
}

// when is a time with how far it is from now.
func when(at events.Instant, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	text := clockTime(at)
	if d := at.Time().Sub(now); d >= 0 {
		return text + "  in " + duration(d)
	} else {
		return text + "  " + duration(-d) + " ago"
	}
}

// clockTime is UTC to the millisecond.
func clockTime(at events.Instant) string { return at.Time().Format("2006-01-02 15:04:05.000Z") }

// age is how long ago, for a column.
func age(at events.Instant, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return duration(max(0, now.Sub(at.Time())))
}

// size is a number of bytes.
func size(n int64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}

// count is "1 entry", "2 entries".
func count[N int | int64 | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
