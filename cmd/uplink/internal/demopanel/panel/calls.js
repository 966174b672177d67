// The last calls of one player: the sent frames and their delivery statuses.

// Fates of a call.
export const flying = 'flying';
export const own = 'own';
export const older = 'older';
export const lost = 'lost';

function pose([n, x, y, heading, vx, vy]) {
  return { n, x, y, heading, vx, vy };
}

export class Calls {
  // most is how many calls are kept.
  constructor(most) {
    this.most = most;
    this.all = []; // by number: { n, sent, rebuilt, fate }
    this.newest = null; // the newest call that was rebuilt
  }

  at(n) {
    return this.all[n - this.all[0]?.n];
  }

  add({ sent, rebuilt }) {
    for (const row of sent) {
      this.send(pose(row));
    }
    for (const row of rebuilt) {
      this.rebuild(pose(row), row[6] === 1);
    }
    if (this.all.length > this.most) {
      this.all.splice(0, this.all.length - this.most);
    }
  }

  send(sent) {
    const next = this.all.length > 0 ? this.all.at(-1).n + 1 : sent.n;
    if (sent.n < next) {
      return;
    }
    if (sent.n > next) {
      this.all = []; // some were not shown: begin anew
    }
    this.all.push({ n: sent.n, sent, rebuilt: null, fate: flying });
  }

  // rebuild notes that a call arrived: those before it that did not never will, since they come in order.
  rebuild(rebuilt, withNewer) {
    const call = this.at(rebuilt.n);
    if (!call) {
      return;
    }
    call.rebuilt = rebuilt;
    call.fate = withNewer ? older : own;
    if (this.newest === null || rebuilt.n > this.newest.n) {
      this.newest = call;
    }
    for (let n = rebuilt.n - 1; this.at(n)?.fate === flying; n--) {
      this.at(n).fate = lost;
    }
  }

  // last returns the newest calls, at most count of them.
  last(count) {
    return this.all.slice(-count);
  }

  count(fate) {
    return this.all.reduce((sum, c) => sum + (c.fate === fate ? 1 : 0), 0);
  }
}
