package transport

// outlast runs f until it returns. If a handler that f calls ends the goroutine with
// runtime.Goexit, as t.FailNow does in a game's test, f runs again on another goroutine. What f
// keeps across calls must therefore be valid whenever a handler runs. A panic of f ends the
// process. It is meant to be the whole of a goroutine.
func outlast(f func()) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			panic(v)
		}
		go outlast(f)
	}()
	f()
	returned = true
}
