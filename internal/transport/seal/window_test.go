package seal

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// modelWindow is a window that keeps everything.
type modelWindow struct {
	next   uint64
	lost   uint64
	bursts uint64
	losing bool
	came   map[uint64]bool
}

func (m *modelWindow) verdict(number uint64) Verdict {
	switch {
	case number < m.next && m.next-number > WindowSize:
		return Late
	case m.came[number]:
		return Duplicate
	}
	return New
}

// lose counts the runs of numbers among those from one to before another that never came.
func (m *modelWindow) lose(from, to uint64) {
	at := from
	for _, n := range append(slices.Sorted(maps.Keys(m.came)), to) {
		if n < from || n > to {
			continue
		}
		if n > at {
			if !m.losing {
				m.bursts++
			}
			m.losing = true
		}
		if n < to {
			m.losing, at = false, n+1
		}
	}
}

func (m *modelWindow) mark(number uint64) {
	was := m.next
	m.next = max(m.next, number+1)
	if m.next > LossAge { // what has that age now, less what had it before and what came
		from, to := was-min(was, LossAge), m.next-LossAge
		m.lost += to - from
		m.lose(from, to)
		for n := range m.came {
			if n >= from && n < to {
				m.lost--
			}
		}
	}
	m.came[number] = true
}

// missing counts the numbers in the window from first to last that never came.
func (m *modelWindow) missing(first, last uint64) (n int) {
	for i := max(first, m.next-min(m.next, WindowSize)); i <= last && i < m.next; i++ {
		if !m.came[i] {
			n++
		}
	}
	return n
}

func TestWindowAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.UintRange(12, 32).Draw(t, "width")
		w, m := Window{}, modelWindow{came: map[uint64]bool{}}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			number := m.next
			switch rapid.IntRange(0, 5).Draw(t, "kind") {
			case 0: // a leap, up to the farthest that can be told
				number += rapid.Uint64Range(0, 1<<(width-1)-1).Draw(t, "leap")
			case 1, 2: // around a whole window or word
				number += rapid.Uint64Range(0, WindowSize+70).Draw(t, "ahead")
			case 3:
				number -= min(number, rapid.Uint64Range(1, WindowSize+70).Draw(t, "behind"))
			case 4:
				number -= min(number, rapid.Uint64Range(1, 1<<(width-1)).Draw(t, "far behind"))
			}
			got, verdict := w.Check(uint32(number)&(1<<width-1), width)
			if want := m.verdict(number); verdict != want || verdict != Late && got != number {
				t.Fatalf("number %d, next %d: %d, verdict %d; want %d", number, m.next, got, verdict, want)
			}
			if verdict == New && rapid.IntRange(0, 9).Draw(t, "opens") > 0 {
				w.Mark(number)
				m.mark(number)
			}
			behind := uint64(0)
			if number < m.next {
				behind = m.next - 1 - number
			}
			if w.Next() != m.next || w.Lost() != m.lost || w.Bursts() != m.bursts || w.Behind(number) != behind {
				t.Fatalf("next %d, lost %d in %d bursts, behind %d; want %d, %d in %d, %d",
					w.Next(), w.Lost(), w.Bursts(), w.Behind(number), m.next, m.lost, m.bursts, behind)
			}
			first := m.next - min(m.next, rapid.Uint64Range(0, WindowSize+70).Draw(t, "first"))
			last := first + rapid.Uint64Range(0, WindowSize+70).Draw(t, "last")
			if got, want := w.Missing(first, last), m.missing(first, last); got != want {
				t.Fatalf("%d of %d to %d are missing, next %d; want %d", got, first, last, m.next, want)
			}
		}
	})
}

func TestWindowBeforeTheFirstNumber(t *testing.T) {
	var w Window
	if number, verdict := w.Check(1<<18-1, 19); number != 1<<18-1 || verdict != New {
		t.Errorf("the farthest number: %d, verdict %d", number, verdict)
	}
	for _, truncated := range []uint32{1 << 18, 1<<19 - 1} { // -2^18 and -1
		if _, verdict := w.Check(truncated, 19); verdict != Late {
			t.Errorf("%#x in a new window: verdict %d, want Late", truncated, verdict)
		}
	}
	w.Mark(5)
	if _, verdict := w.Check(1<<19-1, 19); verdict != Late || w.Lost() != 0 {
		t.Errorf("number -1: verdict %d, lost %d", verdict, w.Lost())
	}
}
