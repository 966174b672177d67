// Package lab lets a visitor of the demo change its link, codec and redundancy while it runs, and see one of its
// players as sent and as the dedicated server rebuilt it: an HTTP handler, and a panel for a page.
package lab

import (
	"embed"
	"io/fs"
	"net/http"
	"sync"
)

//go:embed panel
var embedded embed.FS

// Game is what runs. Its methods are safe for concurrent use.
type Game interface {
	// Settings are those in force, or being brought about.
	Settings() Settings
	// Change makes valid settings those in force. What takes time goes on after it has returned.
	Change(Settings) error
	// Traffic is what was measured last.
	Traffic() Traffic
}

// Lab is the controls of one game. It is safe for concurrent use.
type Lab struct {
	game  Game
	stage *Stage
	mu    sync.Mutex // held by who changes settings
}

// New makes the controls of a game whose actors play on that stage.
func New(game Game, stage *Stage) *Lab {
	return &Lab{game: game, stage: stage}
}

// Handler answers whoever comes (a dashboard.Guard asks who that is) under /demo/:
//
//	GET  state       settings, their limits, what is measured
//	POST state       changes settings
//	GET  view        one actor as sent and as rebuilt, and the state each second, as server-sent events
//	GET  panel.js    a module whose mount(section, {readOnly}) shows all this in a page; its parts lie beside it
//	GET  panel.css   the panel's style
func (l *Lab) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /demo/state", l.getState)
	mux.HandleFunc("POST /demo/state", l.postState)
	mux.HandleFunc("GET /demo/view", l.view)
	mux.Handle("GET /demo/", http.StripPrefix("/demo", http.FileServerFS(Panel())))
	return mux
}

// Panel is the files of the panel: panel.js, panel.css and what they need.
func Panel() fs.FS {
	files, err := fs.Sub(embedded, "panel")
	if err != nil {
		panic("lab: no panel: " + err.Error()) // the name is a constant
	}
	return files
}
