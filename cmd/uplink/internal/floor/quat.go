package floor

import "github.com/uplink-rpc/uplink/internal/codec/quat"

func (f *field) quatOf(row []float64) quat.Float {
	return quat.UnpackFloat(int(row[f.at]), [3]float64(row[f.at+1:]), f.limit)
}

// turns appends where rotations lead, in the coordinates in which the true
// orientation is sent.
func (s *series) turns(f *field, k, n int, x []float64) (_ []float64, y float64) {
	b := n - s.d
	big := int(s.rows[n][f.at])
	base := f.quatOf(s.rows[b])
	hold := base.Pack(big, f.limit)
	to := func(v [3]float64) {
		t := quat.ExpFloat(v).Mul(base).Pack(big, f.limit)
		for i := range k + 1 {
			x = append(x, t[i]-hold[i])
		}
	}
	for _, lag := range []int{1, 2, 4, s.d} {
		v := quat.BetweenFloat(f.quatOf(s.rows[b-lag]), base)
		for i := range v {
			v[i] *= float64(s.d) / float64(lag)
		}
		to(v)
	}
	if w := f.velocity; w != nil {
		rate := func(m int) (v [3]float64) {
			for i := range v {
				v[i] = s.rows[m][w.at+i] * f.factor * float64(s.d)
			}
			return v
		}
		now, was, before, far := rate(n), rate(b), rate(b-1), rate(b-s.d)
		var mean [3]float64
		for i := range mean {
			mean[i] = (now[i] + was[i]) / 2
			before[i] = mean[i] + was[i] - before[i]
			far[i] = mean[i] + was[i] - far[i]
		}
		to(mean)
		to(now)
		to(was)
		to(before)
		to(far)
	}
	for j := range k {
		x = append(x, s.rows[n][f.at+1+j]-hold[j])
	}
	return x, s.rows[n][f.at+1+k] - hold[k]
}
