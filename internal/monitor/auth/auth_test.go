package auth

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func open(t *testing.T) (dir string, g *Guard, token string) {
	t.Helper()
	dir = t.TempDir()
	g, token, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, g, token
}

func TestTokenIsShownOnceAndKeptHashed(t *testing.T) {
	dir, g, token := open(t)
	if len(token) < 40 || !strings.HasPrefix(token, tokenPrefix) || !g.isToken(token) {
		t.Fatalf("token %q", token)
	}
	data, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), token) || strings.Contains(string(data), sessionOf(token)) {
		t.Errorf("the file tells the secret: %s", data)
	}
	if info, _ := os.Stat(filepath.Join(dir, FileName)); runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, want 0600", info.Mode())
	}
	again, shown, err := Open(dir)
	if err != nil || shown != "" || !again.isToken(token) {
		t.Errorf("second Open: token %q, err %v", shown, err)
	}
}

func TestRenewEndsTheOldToken(t *testing.T) {
	dir, _, old := open(t)
	g, fresh, err := Renew(dir)
	if err != nil || fresh == old || g.isToken(old) || !g.isToken(fresh) || g.isSession(sessionOf(old)) {
		t.Fatalf("old %q, new %q, err %v", old, fresh, err)
	}
}

func TestDamagedFile(t *testing.T) {
	for name, content := range map[string]string{
		"empty": "", "other format": `{"format":"x"}`,
		"short hash": `{"format":"eigenhead.auth/1","token_sha256":"00","session_sha256":"00"}`,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, FileName), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Open(dir); err == nil || !strings.Contains(err.Error(), FileName) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestZeroGuardLetsNobodyIn(t *testing.T) {
	var g Guard
	for _, h := range []string{"", "Bearer ", "Bearer x"} {
		if g.Allowed(request("POST", map[string]string{"Authorization": h})) {
			t.Errorf("%q let in", h)
		}
	}
	if g.Login(httptest.NewRecorder(), "") {
		t.Error("an empty token logs in")
	}
}

func request(method string, headers map[string]string) *http.Request {
	r := httptest.NewRequest(method, "http://127.0.0.1:7070/api/v1/runs", nil)
	for k, v := range headers {
		if v != "" {
			r.Header.Set(k, v)
		}
	}
	return r
}

func TestAllowed(t *testing.T) {
	_, g, token := open(t)
	cookie := CookieName + "=" + sessionOf(token)
	for _, c := range []struct {
		name    string
		method  string
		headers map[string]string
		want    bool
	}{
		{"nothing", "GET", nil, false},
		{"token", "POST", map[string]string{"Authorization": "Bearer " + token}, true},
		{"token, scheme in lower case", "GET", map[string]string{"Authorization": "bearer " + token}, true},
		{"wrong token", "GET", map[string]string{"Authorization": "Bearer " + token + "x"}, false},
		{"wrong token beside a cookie", "GET", map[string]string{"Authorization": "Bearer x", "Cookie": cookie}, false},
		{"token as cookie", "GET", map[string]string{"Cookie": CookieName + "=" + token}, false},
		{"basic", "GET", map[string]string{"Authorization": "Basic " + token}, false},
		{"cookie", "GET", map[string]string{"Cookie": cookie}, true},
		{"session as token", "GET", map[string]string{"Authorization": "Bearer " + sessionOf(token)}, false},
		{"cookie, our page posts", "POST", map[string]string{"Cookie": cookie, "Sec-Fetch-Site": "same-origin"}, true},
		{"cookie, another site posts", "POST", map[string]string{"Cookie": cookie, "Sec-Fetch-Site": "cross-site"}, false},
		{"cookie, another port posts", "POST", map[string]string{"Cookie": cookie, "Origin": "http://127.0.0.1:8080"}, false},
	} {
		if got := g.Allowed(request(c.method, c.headers)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestEveryoneStillRefusesOtherSites(t *testing.T) {
	g := Everyone()
	if !g.Allowed(request("POST", nil)) {
		t.Error("a program on this machine is refused")
	}
	if g.Allowed(request("POST", map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"})) {
		t.Error("another site's page may post")
	}
	rebound := request("GET", nil)
	rebound.Host = "evil.example:7070"
	if g.Allowed(rebound) {
		t.Error("a foreign name that points here may read")
	}
}

func TestLoginSetsAStrictCookie(t *testing.T) {
	_, g, token := open(t)
	g.Secure = true
	if w := httptest.NewRecorder(); g.Login(w, "wrong") || len(w.Result().Cookies()) != 0 {
		t.Fatal("a wrong token logs in")
	}
	w := httptest.NewRecorder()
	if !g.Login(w, " "+token+"\n") {
		t.Fatal("the right token does not log in")
	}
	c := w.Result().Cookies()[0]
	if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Value == token {
		t.Errorf("cookie %v", c)
	}
	if !g.Allowed(request("GET", map[string]string{"Cookie": c.Name + "=" + c.Value})) {
		t.Error("the cookie does not open")
	}
	out := httptest.NewRecorder()
	g.Logout(out)
	if c := out.Result().Cookies()[0]; c.MaxAge >= 0 || c.Value != "" {
		t.Errorf("logout leaves %v", c)
	}
}

func TestMiddleware(t *testing.T) {
	_, g, _ := open(t)
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) })
	for _, c := range []struct {
		g    *Guard
		r    *http.Request
		want int
	}{
		{g, request("GET", nil), 401},
		{Everyone(), request("POST", map[string]string{"Sec-Fetch-Site": "cross-site"}), 403},
		{Everyone(), request("GET", nil), 204},
	} {
		w := httptest.NewRecorder()
		c.g.Middleware(ok).ServeHTTP(w, c.r)
		if w.Code != c.want {
			t.Errorf("status %d, want %d", w.Code, c.want)
		}
		if c.want >= 400 && !strings.Contains(w.Body.String(), `"hint"`) {
			t.Errorf("body %s", w.Body)
		}
	}
}

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1:7070": true, "[::1]:0": true, "localhost:1": true, "127.9.9.9:1": true,
		":7070": false, "0.0.0.0:7070": false, "10.0.0.1:7070": false, "example.com:1": false, "127.0.0.1": false} {
		if Loopback(addr) != want {
			t.Errorf("Loopback(%q) = %v", addr, !want)
		}
	}
}
