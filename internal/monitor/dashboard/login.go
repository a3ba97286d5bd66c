package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
)

// maxForm bounds the login form: a token and an address.
const maxForm = 8 << 10

type loginView struct {
	Next  string
	Wrong bool
}

func (s *server) loginPage(w http.ResponseWriter, r *http.Request) {
	next := local(r.URL.Query().Get("next"))
	if s.guard.Allowed(r) {
		http.Redirect(w, r, next, http.StatusSeeOther)
		return
	}
	s.showLogin(w, r, http.StatusOK, loginView{Next: next})
}

func (s *server) login(w http.ResponseWriter, r *http.Request) {
	if http.NewCrossOriginProtection().Check(r) != nil {
		s.refuse(w, r, &refusal{http.StatusForbidden, "the form came from another site"})
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		s.refuse(w, r, unreadable(err))
		return
	}
	next := local(r.PostForm.Get("next"))
	if !s.guard.Login(w, r.PostForm.Get("token")) {
		s.showLogin(w, r, http.StatusUnauthorized, loginView{Next: next, Wrong: true})
		return
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
}

// unreadable says why a form did not come whole.
func unreadable(err error) *refusal {
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &refusal{http.StatusRequestTimeout, "the form came too slowly"}
	case errors.As(err, &large):
		return &refusal{http.StatusRequestEntityTooLarge, fmt.Sprintf("the form has more than %d bytes", large.Limit)}
	}
	return &refusal{http.StatusBadRequest, "the form cannot be read"}
}

func (s *server) logout(w http.ResponseWriter, r *http.Request) {
	if http.NewCrossOriginProtection().Check(r) != nil {
		s.refuse(w, r, &refusal{http.StatusForbidden, "the form came from another site"})
		return
	}
	s.guard.Logout(w)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

func (s *server) showLogin(w http.ResponseWriter, r *http.Request, status int, l loginView) {
	v := s.view("Log in", map[string]any{"page": "login"}, l)
	v.Login = false
	if err := s.write(w, status, "login", v); err != nil {
		s.refuse(w, r, err)
	}
}

// local returns an address of this server, "/" for any other: a login must not send
// its reader elsewhere.
func local(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") || strings.HasPrefix(next, "/data/") {
		return "/"
	}
	return next
}
