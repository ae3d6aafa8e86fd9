package schemas

import (
	"github.com/gatewaymeter/gatewaymeter/meter"
)

// The range of R2's plausible times, beside the meter's min_time.
const year2200 = 7_258_118_400_000 // ms, exclusive

// timeIn reads a time in the declared unit as ms. The reason is BadTime, or ImplausibleTime for a whole number
// that is beyond 64 bits; min_time and the year 2200 are not judged here.
func timeIn(unit meter.TimeUnit, s span, b []byte) (int64, meter.Reason) {
	if unit == meter.UnitRFC3339 {
		if s.token == text && !s.escaped {
			if ms, ok := rfc3339(b[s.start:s.end]); ok {
				return ms, meter.ReasonNone
			}
		}
		if s.token == text && s.escaped {
			if ms, ok := rfc3339(appendUnescaped(nil, b[s.start:s.end])); ok {
				return ms, meter.ReasonNone
			}
		}
		return 0, meter.BadTime
	}
	if s.token != number {
		return 0, meter.BadTime
	}
	v, size := numberIn(unit, s, b)
	switch size {
	case fraction:
		return 0, meter.BadTime
	case tooLarge:
		return 0, meter.ImplausibleTime
	}
	return v, meter.ReasonNone
}

// numberIn is the number at s in ms: `s` may have decimals down to the ms, us and ns are floored to it.
func numberIn(unit meter.TimeUnit, s span, b []byte) (int64, size) {
	switch unit {
	case meter.UnitS:
		return parseDecimal(b[s.start:s.end]).shifted(3).whole()
	case meter.UnitUs:
		return parseDecimal(b[s.start:s.end]).floored(3)
	case meter.UnitNs:
		return parseDecimal(b[s.start:s.end]).floored(6)
	}
	return s.whole(b)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// rfc3339 reads a time as R2 wants it: upper-case T and Z, any offset, floored to the ms; second 60 only at
// 23:59:60 UTC, as 23:59:59.999.
func rfc3339(b []byte) (int64, bool) {
	if len(b) < len("2006-01-02T15:04:05Z") || b[4] != '-' || b[7] != '-' || b[10] != 'T' || b[13] != ':' || b[16] != ':' {
		return 0, false
	}
	year, month, day := number2(b[0:2])*100+number2(b[2:4]), number2(b[5:7]), number2(b[8:10])
	hour, minute, second := number2(b[11:13]), number2(b[14:16]), number2(b[17:19])
	if number2(b[0:2]) < 0 || number2(b[2:4]) < 0 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return 0, false
	}
	if hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60 {
		return 0, false
	}
	ms, rest, ok := milliseconds(b[19:])
	if !ok {
		return 0, false
	}
	offset, ok := zone(rest)
	if !ok {
		return 0, false
	}
	minutes := days(year, month, day)*1440 + hour*60 + minute - offset
	if second == 60 {
		if floorDiv(minutes, 1440)*1440+1439 != minutes {
			return 0, false
		}
		second, ms = 59, 999
	}
	return (minutes*60+second)*1000 + ms, true
}

// number2 is the number of two digits, or far below zero.
func number2(b []byte) int64 {
	if b[0]-'0' > 9 || b[1]-'0' > 9 {
		return -1 << 20
	}
	return int64(b[0]-'0')*10 + int64(b[1]-'0')
}

// milliseconds reads the optional fraction of a second.
func milliseconds(b []byte) (ms int64, rest []byte, ok bool) {
	if b[0] != '.' {
		return 0, b, true
	}
	i := 1
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		if i <= 3 {
			ms = ms*10 + int64(b[i]-'0')
		}
	}
	for k := i; k <= 3; k++ {
		ms *= 10
	}
	return ms, b[i:], i > 1
}

// zone reads Z or an offset in minutes.
func zone(b []byte) (int64, bool) {
	if string(b) == "Z" {
		return 0, true
	}
	if len(b) != len("+00:00") || b[0] != '+' && b[0] != '-' || b[3] != ':' {
		return 0, false
	}
	hour, minute := number2(b[1:3]), number2(b[4:6])
	if hour < 0 || hour > 23 || minute < 0 || minute > 59 {
		return 0, false
	}
	if b[0] == '-' {
		return -(hour*60 + minute), true
	}
	return hour*60 + minute, true
}

func leap(year int64) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

func daysIn(year, month int64) int64 {
	switch month {
	case 2:
		if leap(year) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// days counts the days from 1970-01-01 to a date of the years 0 to 9999 (negative before 1970).
func days(year, month, day int64) int64 {
	if month <= 2 { // years that begin in March end with the leap day
		year, month = year-1, month+12
	}
	return 365*year + floorDiv(year, 4) - floorDiv(year, 100) + floorDiv(year, 400) + (153*(month-3)+2)/5 + day - 719469
}
