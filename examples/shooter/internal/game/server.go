package game

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/uplink-rpc/uplink/area"
	"github.com/uplink-rpc/uplink/ds"
	"github.com/uplink-rpc/uplink/interpolate"
	"github.com/uplink-rpc/uplink/rewind"
	"github.com/uplink-rpc/uplink/schema"
	"github.com/uplink-rpc/uplink/token"
	"github.com/uplink-rpc/uplink/transport"
)

// Server is a dedicated server of the game. Its methods are for one goroutine.
type Server struct {
	*ds.Server
	world   *ds.World[Player]
	selves  *ds.ObjectType[Body]
	past    *rewind.History[Player]
	key     token.Key
	tick    uint64
	players map[*ds.Player]*player
	ids     *ds.IDPool // ids of players' objects; 0 is not used, because it means no target
	shown   Players    // players of the newest tick
	seen    Players    // scratch
}

// player is the server's state of a player.
type player struct {
	*ds.Player
	Look
	body     Body
	id       uint16 // id of the player's objects
	life     uint8  // generation of the player's objects
	stream   *ds.SnapshotStream
	hits     *ds.Stream[Shot] // reliable stream of the player's own shots and of those that hit the player
	shots    *ds.Stream[Shot] // stream of all other shots
	sees     []area.ID
	out      uint64 // first tick in which the player is no longer out
	score    uint16
	armed    bool
	moves    [maxShotAge]moved // by sequence number
	nextShot uint64            // sequence number of the first move that may fire again
}

// moved is a move that was processed.
type moved struct {
	seq, tick uint64
	position  schema.Vec3
}

// NewServer returns a server on a network; nil means UDP.
func NewServer(addr string, network transport.Network) (s *Server, err error) {
	s = &Server{players: map[*ds.Player]*player{}}
	if s.ids, err = ds.NewIDPool(1, 255); err != nil {
		return nil, err
	}
	adapter, err := interpolate.Tagged[Player]()
	if err != nil {
		return nil, err
	}
	if s.past, err = rewind.New(adapter, rewind.Config{TickHz: TickHz, Method: Method}); err != nil {
		return nil, err
	}
	if s.key, err = token.NewKey(); err != nil {
		return nil, err
	}
	s.Server, err = ds.Listen(addr, ds.Config{Key: s.key, Network: network, Poll: true, TickHz: TickHz, MaxPlayers: 64, Joined: s.join, Left: s.left})
	if err != nil {
		return nil, err
	}
	s.world, err = ds.NewWorld(s.Server, "arena", ds.WorldConfig[Player]{TickHz: TickHz, Areas: true})
	if err == nil {
		s.selves, err = ds.AddType[Body](s.world, "self")
	}
	err = errors.Join(err, ds.Handle(s.Server, "Move", s.move, ds.JitterBuffer{Repeat: 3}, ds.ForPrediction{}))
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Login returns a connect token for a player, as a game's backend does after the player has logged
// in.
func (s *Server) Login(clientID uint64) (token.Token, error) {
	return token.Issue(s.key.Issuer(), token.Claims{ClientID: clientID, Expires: time.Now().Add(time.Minute), Servers: []netip.AddrPort{s.Addr()}})
}

func (s *Server) join(p *ds.Player) {
	id, life, err := s.ids.Take()
	if err != nil {
		p.Kick(err.Error())
		return
	}
	angle := float64(id) * 2.4 // the golden angle: around the center, with distance from each other
	sin, cos := math.Sincos(angle)
	d := 16 + float64(id%6)*4
	l := &player{Player: p, id: id, life: life, body: Body{Position: rounded(schema.Vec3{X: d * cos, Y: d * sin, Z: 6}, positionSteps)}}
	s.players[p] = l
	var offered, hits, shots error
	l.stream, offered = s.world.Offer(p)
	l.hits, hits = ds.Bind[Shot](p, "Hit", ds.BindConfig{RateHz: 4, Reliable: true})
	l.shots, shots = ds.Bind[Shot](p, "Shot", ds.BindConfig{RateHz: 20})
	if err := errors.Join(offered, hits, shots); err != nil {
		s.left(p, err)
		p.Kick(err.Error())
	}
}

func (s *Server) left(p *ds.Player, _ error) {
	if l, joined := s.players[p]; joined {
		delete(s.players, p)
		_ = s.ids.Release(l.id, l.life) // taken in join
	}
}

// move processes the move of a player for a tick, and the shot that it contains if it is new.
func (s *Server) move(p *ds.Player, f ds.Frame[Move]) {
	l, v := s.players[p], &f.Value
	Step(&l.body, v)
	l.Look = v.Look
	l.moves[f.Seq%maxShotAge] = moved{f.Seq, s.tick + 1, l.body.Position}
	shot := uint64(v.Shot)
	if !l.armed || shot < max(1, l.nextShot) || shot > f.Seq || shot+maxShotAge <= f.Seq {
		return
	}
	l.nextShot = shot + Cooldown
	m := l.moves[shot%maxShotAge]
	if m.seq != shot { // the move was lost
		m = moved{shot, s.tick + 1 - (f.Seq - shot), l.body.Position}
	}
	s.judge(l, &v.Fired, m)
}

// maxShotAge is the number of moves within which a shot must arrive.
const maxShotAge = TickHz / 2

// Advance processes a tick. Call it TickHz times a second.
func (s *Server) Advance() error {
	s.Poll()
	s.tick++
	sorted := slices.SortedFunc(maps.Values(s.players), func(a, b *player) int { return cmp.Compare(a.id, b.id) })
	s.shown.IDs, s.shown.Objects = s.shown.IDs[:0], s.shown.Objects[:0]
	for _, l := range sorted {
		s.shown.IDs = append(s.shown.IDs, uint32(l.id)<<8|uint32(l.life))
		s.shown.Objects = append(s.shown.Objects, Player{Body: l.body})
	}
	err := s.past.Add(Time(s.tick), s.shown.IDs, s.shown.Objects)
	err = errors.Join(err, s.world.Begin(s.tick))
	for i, l := range sorted {
		// Shots can be decided when the round-trip time is known well enough.
		l.armed = l.armed || s.tick%TickHz == 0 && l.Stats().Transport.RTTs.Count() >= minMeasurements
		o := &s.shown.Objects[i]
		o.Yaw, o.Pitch, o.Armed, o.Out, o.Score = l.Yaw, l.Pitch, l.armed, s.tick < l.out, l.score
		l.look(sorted)
		err = errors.Join(err, s.world.Put(l.id, l.life, o, area.ID(l.id)), s.selves.Put(l.id, l.life, &l.body, selfArea+area.ID(l.id)))
	}
	_, sent := s.world.Send()
	return errors.Join(err, sent)
}

// selfArea plus a player's id is an area that only this player sees. The state from which a client
// predicts must be of the snapshot's tick, which is guaranteed for objects that only one player
// sees.
const selfArea = 1 << 16

// look sets the players whom a player sees. Each is in an area of its own, so this depends only on
// the distance.
func (l *player) look(all []*player) {
	sees := []area.ID{selfArea + area.ID(l.id)}
	for _, o := range all {
		d, id := length(sub(o.body.Position, l.body.Position)), area.ID(o.id)
		if d < enterRange || d < leaveRange && slices.Contains(l.sees, id) {
			sees = append(sees, id)
		}
	}
	l.sees = sees
	l.stream.See(sees...)
}

// judge decides a shot by the scene that its shooter saw, and sends the decision to the players
// nearby.
func (s *Server) judge(l *player, f *Fired, m moved) {
	// The time for which a single move waited depends on the delay of its datagram; the mean does
	// not.
	buffer, _ := l.Buffer("Move")
	v := l.stream.Viewer(Time(s.tick + 1))
	v.Waited, v.Delay = buffer.Slack, Delay
	at, _ := s.past.Seen(time.Duration(f.Shown)*time.Millisecond, Time(m.tick), v)
	s.past.At(v, at, &s.seen)
	ray := Ray{m.position, direction(f.Aim)}
	way := sub(f.Origin, m.position)
	if d := length(way); d == 0 || d < maxOriginError && (Ray{m.position, schema.Vec3{X: way.X / d, Y: way.Y / d, Z: way.Z / d}}).Free(d) == d {
		ray.From = f.Origin // as the client predicted it, and not behind a wall
	}
	target, far := ray.Trace(l.id, &s.seen)
	shot := Shot{Shooter: l.id, Target: target, Shot: f.Shot, From: ray.From, To: ray.at(far)}
	for _, t := range s.players {
		if t.id == target && s.tick >= t.out && m.tick >= l.out {
			shot.Counts = true
			t.out = s.tick + outTicks
			l.score++
		}
	}
	hits, shots := []*ds.Stream[Shot]{l.hits}, []*ds.Stream[Shot]{}
	for _, t := range s.players {
		switch {
		case t == l:
		case t.id == target:
			hits = append(hits, t.hits)
		case length(sub(t.body.Position, shot.To)) < leaveRange:
			shots = append(shots, t.shots)
		}
	}
	// The errors are those of players who have left or acknowledge nothing.
	ds.SendAll(&shot, hits...)
	ds.SendAll(&shot, shots...)
}
