package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/uplink-rpc/uplink/token"
)

// maxAnswer is the maximum size of an answer of a backend, in bytes.
const maxAnswer = 16 << 10

// Backend returns a function that gets a server and a token for a client from "uplink backend", as
// the login service of a game does. secret is that of the login service; it may be empty. avoid are
// addresses of servers that do not answer.
func Backend(url, secret string) func(ctx context.Context, client uint64, avoid []string) (addr string, t token.Token, err error) {
	url = strings.TrimSuffix(url, "/") + "/token"
	return func(ctx context.Context, client uint64, avoid []string) (addr string, t token.Token, err error) {
		var a struct {
			Server string
			Token  token.Token
		}
		body, err := json.Marshal(map[string]any{"client": strconv.FormatUint(client, 10), "avoid": avoid})
		if err != nil {
			return "", t, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return "", t, err
		}
		if secret != "" {
			req.Header.Set("Authorization", "Bearer "+secret)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return "", t, err
		}
		defer res.Body.Close() //nolint:errcheck // opened for reading only
		text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
		switch {
		case err != nil:
			return "", t, err
		case res.StatusCode != http.StatusOK:
			return "", t, fmt.Errorf("backend: %s: %s", res.Status, bytes.TrimSpace(text))
		}
		err = json.Unmarshal(text, &a)
		return a.Server, a.Token, err
	}
}
