
'use strict';
// Everything that comes from the job becomes text by textContent. Nothing here makes HTML of text.
(() => {
  const JOB_STATES = ['starting', 'training', 'waiting', 'quiet', 'hung', 'stopped', 'ended'];
  const LETTERS = {starting: 'S', training: 'T', waiting: 'W', quiet: 'Q', hung: 'H', stopped: 'P', gone: '\u2013', ended: 'E'};
  const URGENCY = ['hung', 'stopped', 'quiet', 'waiting', 'starting', 'training', 'gone'];
  const MEANINGS = {starting: 'starting', training: 'training', waiting: 'waiting for other ranks', quiet: 'quiet', hung: 'hung',
    stopped: 'stopped by a signal', gone: 'ended'};
  const MOST_EVENTS = 500;
  const MOST_PARTS = 8;  // of a list of ranks; the squares show every rank
  const PERIOD = 1000;
  const $ = (id) => document.getElementById(id);

  // ---- small tools
  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }
  function draw(tag, attributes) {
    const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  }
  function say(element, text) {
    const wanted = String(text ?? '');
    if (element.textContent !== wanted) element.textContent = wanted;
  }
  function tone(element, base, state) {
    const wanted = (base + ' s-' + (Object.hasOwn(LETTERS, state) ? state : 'gone')).trim();
    if (element.getAttribute('class') !== wanted) element.setAttribute('class', wanted);
  }
  // Makes the children of an element match a list. Elements stay, so that the focus stays too.
  function match(parent, items, create, update) {
    while (parent.children.length > items.length) parent.lastElementChild.remove();
    items.forEach((item, index) => {
      if (index === parent.children.length) parent.append(create());
      update(parent.children[index], item);
    });
  }
  const two = (n) => String(n).padStart(2, '0');
  const clock = (ms) => { const d = new Date(ms); return two(d.getHours()) + ':' + two(d.getMinutes()) + ':' + two(d.getSeconds()); };
  function span(ms) {
    const s = Math.max(0, Math.round(ms / 1000));
    if (s < 120) return s + ' s';
    if (s < 7200) return Math.floor(s / 60) + ' min';
    if (s < 172800) return Math.floor(s / 3600) + ' h ' + Math.floor(s % 3600 / 60) + ' min';
    return Math.floor(s / 86400) + ' d ' + Math.floor(s % 86400 / 3600) + ' h';
  }
  function bytes(n) {
    const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
    let unit = 0;
    while (n >= 1000 && unit < units.length - 1) { n /= 1024; ++unit; }
    return (unit === 0 || n >= 100 ? n.toFixed(0) : n.toFixed(1)) + ' ' + units[unit];
  }
  const maybeBytes = (n) => n == null ? '' : bytes(n);
  const percent = (x) => x == null ? '' : Math.round(x * 100) + ' %';
  const rate = (x) => x == null ? '' : x >= 100 ? x.toFixed(0) : x >= 1 ? x.toFixed(1) : x.toFixed(2);
  const plural = (n, word) => n + ' ' + word + (n === 1 ? '' : 's');
  function ranges(ranks) {
    const parts = [];
    for (let i = 0; i < ranks.length; ++i) {
      let end = i;
      while (end + 1 < ranks.length && ranks[end + 1] === ranks[end] + 1) ++end;
      parts.push(end === i ? ranks[i] : end === i + 1 ? ranks[i] + ', ' + ranks[end] : ranks[i] + '-' + ranks[end]);
      i = end;
    }
    return parts.length > MOST_PARTS ? parts.slice(0, MOST_PARTS).join(', ') + ', \u2026' : parts.join(', ');
  }
  function spread(rows, value, text) {
    const values = rows.map(value).filter((x) => x != null);
    if (!values.length) return '';
    const least = Math.min(...values), most = Math.max(...values);
    if (text(least) === text(most)) return text(most);
    // The unit once: "42 to 44 %".
    const unit = / \D+$/.exec(text(most));
    return (unit && text(least).endsWith(unit[0]) ? text(least).slice(0, -unit[0].length) : text(least)) + ' to ' + text(most);
  }
  const average = (rows, value) => {
    const values = rows.map(value).filter((x) => x != null);
    return values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
  };

  // ---- the job at this moment
  let state = null;
  let received = 0;
  const rowsNow = () => state ? state.view.rows : [];

  function show(next) {
    state = next;
    received = Date.now();
    const view = state.view;
    const word = state.ended != null ? 'ended' : view.state;
    const name = view.command.split('/').pop() || 'lockstep';
    document.title = (word === 'training' ? '' : word + ': ') + name;
    say($('command'), name);
    $('command').title = view.command;
    // A run id that nobody has given is a random one, and says nothing.
    const given = state.run_id !== 'none' && !/^[0-9a-f-]{36}$/.test(state.run_id);
    say($('place'), [view.node, 'attempt ' + view.attempt, given ? 'run ' + state.run_id : '']
      .filter(Boolean).join(' \u00b7 '));
    tone($('verdict'), '', word);
    say($('mark'), LETTERS[word] || '?');
    say($('state'), word);
    say($('words'), state.ended != null ? state.ended : view.words === word ? '' : view.words.startsWith(word + ': ') ? view.words.slice(word.length + 2) : view.words);
    say($('straggler'), view.straggler);
    showFacts();
    showGroups();
    showGrid();
    showNodes();
    showGoodput();
    if ($('all').open) showRows();
    showAttempts();
    if ($('rank').open) showRankFacts();
    if (state.events > events.next) fetchEvents();
    addMoment();
    say($('foot'), 'lockstep ' + state.version + (state.logs ? ' \u00b7 logs: ' + state.logs : ''));
  }
  function facts(parent, pairs) {
    match(parent, pairs.filter((pair) => pair[1] !== ''), () => make('div', {}, make('dt'), make('dd')), (card, pair) => {
      say(card.children[0], pair[0]);
      say(card.children[1], pair[1]);
    });
  }
  function showFacts() {
    const rows = rowsNow().filter((row) => row.state !== 'gone');
    const step = rows.find((row) => row.step != null);
    facts($('facts'), [
      ['ranks here', rows.length + ' of ' + state.view.world],
      ['running for', span((state.ended != null ? received : state.now_ms) - state.start_ms)],
      ['goodput', spent() >= 60 ? percent(state.goodput.share) : ''],
      ['restarts', state.restarts + ' of ' + state.max_restarts],
      [step && step.step_guessed ? 'step (a guess)' : 'step', step ? String(step.step) : ''],
      ['steps a second', step ? rate(step.steps_per_s) : ''],
      ['CPU', rows.length ? rows.reduce((sum, row) => sum + row.cpu, 0).toFixed(1) + ' cores' : ''],
      ['memory', rows.length ? bytes(rows.reduce((sum, row) => sum + row.memory_bytes, 0)) : ''],
      ['GPU use', percent(average(rows, (row) => row.gpu_share))],
      ['waits for ranks', percent(average(rows, (row) => row.waiting_share))],
      ['waits for input', percent(average(rows, (row) => row.input_share))]]);
  }
  function showGroups() {
    const groups = new Map();
    for (const row of rowsNow()) {
      const key = [row.state, row.doing, row.where].join('\n');
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(row);
    }
    const sorted = [...groups.values()].sort((a, b) =>
      URGENCY.indexOf(a[0].state) - URGENCY.indexOf(b[0].state) || a[0].rank - b[0].rank);
    const create = () => {
      const group = make('button', {type: 'button'}, make('span', {class: 'badge'}), make('span', {class: 'who'}),
        make('span', {class: 'what'}), make('span', {class: 'num'}), make('span', {class: 'num'}));
      group.addEventListener('click', () => openRank(Number(group.dataset.rank)));
      return group;
    };
    match($('groups'), sorted.slice(0, 100), create, (group, rows) => {
      const first = rows[0];
      tone(group, 'group', first.state);
      group.dataset.rank = first.rank;
      const [badge, who, what, share, load] = group.children;
      say(badge, first.state);
      const ranks = rows.map((row) => row.rank);
      say(who, (rows.length === 1 ? 'rank ' : plural(rows.length, 'rank') + ': ') + ranges(ranks));
      say(what, [first.doing, first.where].filter(Boolean).join('  \u00b7  ') || 'no Python stack');
      const waits = spread(rows, (row) => row.waiting_share, percent);
      say(share, waits && 'waits ' + waits);
      say(load, first.state === 'gone' ? '' : 'CPU ' + spread(rows, (row) => row.cpu, (x) => x.toFixed(1)));
    });
  }
  // ---- all nodes, as this one hears of them
  function showNodes() {
    const {lines, more, silent} = state.nodes;
    $('nodes-part').hidden = !lines.length && !silent.length;
    match($('nodes'), lines, () => make('tr', {}, ...Array.from({length: 6}, () => make('td'))), (row, line) =>
      [line.node, line.ranks, line.state, line.doing, line.where,
        line.quiet_ms < 5000 ? '' : span(line.quiet_ms)].forEach((text, index) => say(row.children[index], text)));
    say($('silent'), silent.join('; '));
    say($('nodes-more'), more ? 'and ' + plural(more, 'line') + ' more' : '');
  }

  // ---- where the time went
  const TONES = {training: 'training', redone: 'hung', waiting: 'waiting', input: 'quiet', start: 'starting', rendezvous: 'ended',
    stopping: 'stopped', down: 'gone'};
  const spent = () => Object.values(state.goodput.seconds).reduce((sum, one) => sum + one, 0);
  const phaseWord = (phase) => phase === 'redone' && state.goodput.redone_guessed ? 'redone (a guess)' : phase;
  function showGoodput() {
    const parts = Object.entries(state.goodput.seconds).filter((part) => part[1] >= .5).sort((a, b) => b[1] - a[1]);
    match($('phases'), parts, () => make('span'), (bar, [phase, seconds]) => {
      tone(bar, '', TONES[phase]);
      bar.style.width = (seconds / spent() * 100).toFixed(2) + '%';
      bar.title = phaseWord(phase) + ' ' + span(seconds * 1000);
    });
    say($('phase-words'), parts.map(([phase, seconds]) =>
      phaseWord(phase) + ' ' + percent(seconds / spent()) + ' (' + span(seconds * 1000) + ')').join(' \u00b7 '));
  }

  function showGrid() {
    const rows = rowsNow().slice(0, 4096);
    const create = () => {
      const cell = make('button', {type: 'button'}, make('span'), make('small'));
      cell.addEventListener('click', () => openRank(Number(cell.dataset.rank)));
      return cell;
    };
    match($('grid'), rows, create, (cell, row) => {
      tone(cell, 'cell', row.state);
      cell.dataset.rank = row.rank;
      cell.tabIndex = cell === document.activeElement || (cell === $('grid').firstElementChild) ? 0 : -1;
      say(cell.children[0], LETTERS[row.state] || '?');
      say(cell.children[1], row.rank);
      const label = 'rank ' + row.rank + ', ' + row.state + (row.where ? ', ' + row.where : '');
      if (cell.getAttribute('aria-label') !== label) { cell.setAttribute('aria-label', label); cell.title = label; }
    });
    const seen = new Set(rows.map((row) => row.state));
    say($('legend'), !rows.length ? 'no worker runs now' : URGENCY.filter((word) => seen.has(word)).map((word) => LETTERS[word] + ' ' + MEANINGS[word]).join(' \u00b7 '));
  }
  $('grid').addEventListener('keydown', (event) => {
    const cells = [...$('grid').children];
    const at = cells.indexOf(document.activeElement);
    if (at < 0) return;
    const across = Math.max(1, cells.filter((cell) => cell.offsetTop === cells[0].offsetTop).length);
    const step = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across}[event.key];
    if (!step || !cells[at + step]) return;
    event.preventDefault();
    cells[at].tabIndex = -1;
    cells[at + step].tabIndex = 0;
    cells[at + step].focus();
  });
  const COLUMNS = [
    ['rank', (row) => row.rank], ['state', (row) => row.state], ['pid', (row) => row.pid],
    ['doing', (row) => row.doing], ['where', (row) => row.where],
    ['waits', (row) => percent(row.waiting_share)], ['input', (row) => percent(row.input_share)],
    ['CPU', (row) => row.cpu.toFixed(1)], ['memory', (row) => bytes(row.memory_bytes)],
    ['GPU', (row) => row.gpu ?? ''], ['GPU use', (row) => percent(row.gpu_share)], ['GPU memory', (row) => maybeBytes(row.gpu_memory_bytes)],
    ['loaders', (row) => row.loaders],
    ['step', (row) => row.step ?? ''], ['output', (row) => row.output_age_ms < 0 ? '' : span(row.output_age_ms) + ' ago'],
    ['last line', (row) => row.last_line]];
  match($('columns'), COLUMNS, () => make('th', {scope: 'col'}), (cell, column) => say(cell, column[0]));
  function showRows() {
    const create = () => {
      const button = make('button', {type: 'button'});
      const line = make('tr', {}, make('td', {}, button), ...COLUMNS.slice(1).map((c) => make('td', c[0] === 'last line' ? {class: 'line'} : {})));
      button.addEventListener('click', () => openRank(Number(button.textContent)));
      return line;
    };
    match($('rows'), rowsNow().slice(0, 4096), create, (line, row) => COLUMNS.forEach((column, index) =>
      say(index ? line.children[index] : line.children[0].firstElementChild, column[1](row))));
  }
  $('all').addEventListener('toggle', showRows);
  function showAttempts() {
    const create = () => make('tr', {}, ...Array.from({length: 5}, () => make('td')));
    match($('attempts'), [...state.attempts].reverse(), create, (line, attempt) => {
      const until = attempt.end_ms ?? state.now_ms;
      [attempt.number, clock(attempt.start_ms), span(until - attempt.start_ms),
        attempt.world + (attempt.nodes > 1 ? ' on ' + attempt.nodes + ' nodes' : ''),
        [attempt.end_ms == null ? 'runs' : attempt.why || attempt.end, ...attempt.others].join('\n')].forEach((text, index) => say(line.children[index], text));
    });
  }

  // ---- one rank
  let chosen = -1;
  let asked = 0;
  function openRank(rank) {
    chosen = rank;
    say($('rank-title'), 'Rank ' + rank);
    match($('threads'), [], null, null);
    say($('last'), ' ');
    showRankFacts();
    if (!$('rank').open) $('rank').showModal();
    askWhy();
  }
  function showRankFacts() {
    const row = rowsNow().find((one) => one.rank === chosen);
    if (!row) return facts($('rank-facts'), [['state', 'not on this node']]);
    say($('rank-title'), 'Rank ' + chosen + (row.where ? ': ' + row.where : ''));
    facts($('rank-facts'), [['state', row.state], ['doing', row.doing], ['pid', String(row.pid)],
      ['CPU', row.cpu.toFixed(1) + ' cores'], ['memory', bytes(row.memory_bytes)],
      ['waits for ranks', percent(row.waiting_share)], ['waits for input', percent(row.input_share)],
      ['GPU (a guess)', row.gpu == null ? '' : String(row.gpu)], ['GPU use', percent(row.gpu_share)], ['GPU memory', maybeBytes(row.gpu_memory_bytes)],
      ['GPU power', row.gpu_watts == null ? '' : Math.round(row.gpu_watts) + ' W'],
      ['loaders', String(row.loaders)], [row.step_guessed ? 'step (a guess)' : 'step', row.step == null ? '' : String(row.step)],
      ['last output', row.output_age_ms < 0 ? 'none yet' : span(row.output_age_ms) + ' ago'],
      ['last line', row.last_line]]);
  }
  async function askWhy() {
    const number = ++asked;
    let blocks = [];
    let output = [];
    try {
      const answer = await ask('/why?rank=' + chosen);
      const rank = answer.ranks.find((one) => one.rank === chosen);
      if (rank) output = rank.output;
      if (rank) blocks = rank.threads.map((thread) => [
        thread.name + (thread.holds_gil ? ', holds the GIL' : '') + (thread.whole ? '' : ' (a part)'), thread.frames.join('\n')]);
      if (rank && !blocks.length) blocks = [rank.state ? ['state ' + rank.state, answer.refusal || 'no Python stack is readable'] : ['the rank has ended', ' ']];
      if (!rank) blocks = [['no such rank runs here now', ' ']];
    } catch (error) {
      blocks = [['the agent did not answer', String(error.message)]];
    }
    if (number !== asked) return;
    say($('last'), output.join('\n') || ' ');
    match($('threads'), blocks, () => make('div', {}, make('h4'), make('pre')), (part, block) => {
      say(part.children[0], block[0]);
      say(part.children[1], block[1]);
    });
  }
  $('again').addEventListener('click', askWhy);
  $('close').addEventListener('click', () => $('rank').close());

  // ---- events
  const events = {next: 0, busy: false};
  async function fetchEvents() {
    if (events.busy) return;
    events.busy = true;
    try {
      const answer = await ask('/events?after=' + events.next);
      events.next = Math.max(answer.next, events.next);
      for (const event of answer.events) {
        const words = [event.rank == null ? '' : 'rank ' + event.rank, event.words].filter(Boolean).join(': ');
        $('events').prepend(make('li', {}, make('time', {}, clock(event.time_ms)),
          make('b', {}, String(event.event).replaceAll('_', ' ')), make('p', {}, words)));
      }
      while ($('events').children.length > MOST_EVENTS) $('events').lastElementChild.remove();
      $('events-part').hidden = $('events').children.length === 0;
    } catch { /* the next state asks again */ }
    events.busy = false;
  }

  // ---- charts
  const MEASURES = [['steps_per_s', 'Steps per second', rate], ['cpu', 'CPU cores of a rank', (x) => x.toFixed(1)],
    ['memory', 'Memory of a rank', bytes], ['waiting', 'Waiting for other ranks', percent, 1],
    ['input', 'Waiting for input', percent, 1], ['gpu', 'GPU use', percent, 1]];
  const SPANS = [[600, '10 min'], [7200, '2 h'], [86400, '24 h']];
  const WIDTH = 600, HEIGHT = 100;
  let seconds = 600;
  let series = null;
  let fetched = 0;
  let cursor = null;

  const charts = MEASURES.map(([key, title, text, most]) => {
    const value = make('span');
    const top = make('b');
    const svg = draw('svg', {viewBox: '0 0 ' + WIDTH + ' ' + HEIGHT, preserveAspectRatio: 'none', 'aria-hidden': 'true'});
    const band = draw('path', {class: 'span'}), mean = draw('path', {class: 'mean'}), line = draw('line', {class: 'cursor', y1: 0, y2: HEIGHT});
    svg.append(band, mean, line);
    const plot = make('div', {class: 'plot'}, svg, top);
    const box = make('div', {class: 'chart', tabindex: '0', role: 'img'}, make('h3', {}, title, value), plot);
    const at = (event) => { const r = plot.getBoundingClientRect(); cursor = Math.min(1, Math.max(0, (event.clientX - r.left) / r.width)); showCharts(); };
    plot.addEventListener('pointermove', at);
    plot.addEventListener('pointerleave', () => { cursor = null; showCharts(); });
    box.addEventListener('keydown', (event) => {
      const step = {ArrowLeft: -.02, ArrowRight: .02}[event.key];
      if (step) { event.preventDefault(); cursor = Math.min(1, Math.max(0, (cursor ?? 1) + step)); }
      if (event.key === 'Escape') cursor = null;
      showCharts();
    });
    box.hidden = true;
    $('charts').append(box);
    return {key, title, text, most, value, top, band, mean, line, box};
  });
  SPANS.forEach(([length, label]) => {
    const button = make('button', {type: 'button', 'aria-pressed': String(length === seconds)}, label);
    button.addEventListener('click', () => {
      seconds = length;
      for (const other of $('spans').children) other.setAttribute('aria-pressed', String(other === button));
      fetchHistory();
    });
    $('spans').append(button, ' ');
  });

  async function fetchHistory() {
    fetched = Date.now();
    const wanted = seconds;
    try {
      const answer = await ask('/history?span=' + wanted);
      if (wanted !== seconds) return;
      series = answer;
    } catch { return; }
    showTime();
  }
  // The newest moment comes with each state. Wider buckets are the agent's, and fetched again.
  function addMoment() {
    if (!series) return;
    if (series.width_ms !== PERIOD) {
      if (Date.now() - fetched >= series.width_ms) fetchHistory();
      return;
    }
    const time = state.now_ms - state.now_ms % PERIOD;
    if (time <= series.time_ms[series.time_ms.length - 1]) return;
    const rows = rowsNow().filter((row) => row.state !== 'gone');
    const values = {steps_per_s: (row) => row.steps_per_s, cpu: (row) => row.cpu, memory: (row) => row.memory_bytes,
      waiting: (row) => row.waiting_share, input: (row) => row.input_share, gpu: (row) => row.gpu_share};
    series.time_ms.push(time);
    series.state.push(state.ended != null ? 6 : Math.max(0, JOB_STATES.indexOf(state.view.state)));
    series.ranks.push(rows.length);
    for (const {key} of charts) {
      const known = rows.map(values[key]).filter((x) => x != null);
      series[key].mean.push(average(rows, values[key]));
      series[key].least.push(known.length ? Math.min(...known) : null);
      series[key].most.push(known.length ? Math.max(...known) : null);
    }
    if (series.time_ms.length > 700) for (const list of lists()) list.splice(0, 100);
    showTime();
  }
  const lists = () => [series.time_ms, series.state, series.ranks,
    ...charts.flatMap(({key}) => [series[key].mean, series[key].least, series[key].most])];
  const now = () => state ? state.now_ms : Date.now();
  // The span that is shown. A young job fills it, too.
  const wide = () => Math.min(seconds * 1000, state ? Math.max(60000, now() - state.start_ms) : Infinity);
  const x = (time) => (1 - (now() - time) / wide()) * WIDTH;

  function showTime() {
    say($('axis-from'), span(wide()) + ' ago');
    showCharts();
    showTimeline();
  }
  // Pieces of a path. A gap in time or an unknown value ends a piece.
  function pieces(list) {
    const found = [];
    let last = -Infinity;
    series.time_ms.forEach((time, index) => {
      if (list[index] == null || x(time) < -5) return;
      if (time - last > series.width_ms * 3.5) found.push([]);
      found[found.length - 1].push(index);
      last = time;
    });
    return found;
  }
  function nice(most, base) {
    if (!(most > 0)) return 1;
    const scale = base ** Math.floor(Math.log(most) / Math.log(base));
    const unit = scale * 10 ** Math.floor(Math.log10(most / scale));
    return [1, 2, 3, 5, 10].map((n) => n * unit).find((n) => n >= most) || most;
  }
  function showCharts() {
    if (!series) return;
    for (const chart of charts) {
      const {mean, least, most} = series[chart.key];
      const known = most.filter((value) => value != null);
      chart.box.hidden = known.length === 0;
      if (!known.length) continue;
      const top = chart.most || nice(Math.max(...known), chart.key === 'memory' ? 1024 : 10);
      const y = (value) => (HEIGHT - value / top * (HEIGHT - 4)).toFixed(1);
      const point = (list) => (index) => x(series.time_ms[index]).toFixed(1) + ' ' + y(list[index]);
      const parts = pieces(mean);
      chart.mean.setAttribute('d', parts.map((part) => 'M' + part.map(point(mean)).join('L') + (part.length === 1 ? 'h1' : '')).join(''));
      chart.band.setAttribute('d', parts.map((part) =>
        'M' + part.map(point(most)).join('L') + 'L' + [...part].reverse().map(point(least)).join('L') + 'Z').join(''));
      say(chart.top, chart.text(top));
      showCursor(chart, mean, least, most);
    }
  }
  function showCursor(chart, mean, least, most) {
    let index = mean.length - 1;
    chart.line.setAttribute('visibility', cursor == null ? 'hidden' : 'visible');
    if (cursor != null) {
      const wanted = now() - (1 - cursor) * wide();
      index = series.time_ms.findIndex((time) => time >= wanted);
      if (index < 0) index = mean.length - 1;
      for (const name of ['x1', 'x2']) chart.line.setAttribute(name, (cursor * WIDTH).toFixed(1));
    }
    const value = mean[index];
    let words = value == null ? 'not known' : chart.text(value);
    const range = value == null ? '' : spread([least[index], most[index]], (one) => one, chart.text);
    if (range !== words) words += range && ' (' + range + ')';
    if (cursor != null) words = clock(series.time_ms[index]) + '  ' + words;
    say(chart.value, words);
    chart.box.setAttribute('aria-label', chart.title + ': ' + words);
  }
  function showTimeline() {
    const from = now() - wide();
    const place = (element, begin, end) => {
      const left = Math.max(0, (begin - from) / (wide() / 100));
      element.style.left = left.toFixed(2) + '%';
      element.style.width = Math.max(.15, (end - from) / (wide() / 100) - left).toFixed(2) + '%';
    };
    const tries = (state ? state.attempts : []).filter((one) => (one.end_ms ?? now()) > from);
    match($('tries'), tries, () => make('span'), (bar, attempt) => {
      place(bar, attempt.start_ms, attempt.end_ms ?? now());
      say(bar, 'attempt ' + attempt.number);
      bar.title = 'attempt ' + attempt.number + (attempt.why ? ': ' + attempt.why : '');
    });
    const runs = [];
    series.time_ms.forEach((time, index) => {
      const end = time + series.width_ms;
      if (end < from) return;
      const last = runs[runs.length - 1];
      if (last && last.state === series.state[index] && time - last.end < series.width_ms * 2.5) last.end = end;
      else runs.push({state: series.state[index], begin: last && time - last.end < series.width_ms * 2.5 ? last.end : time, end});
    });
    match($('states'), runs, () => make('span'), (bar, run) => {
      const word = JOB_STATES[run.state] || 'ended';
      tone(bar, '', word);
      place(bar, run.begin, Math.min(run.end, now()));
      say(bar, run.end - run.begin > wide() * .09 ? word : run.end - run.begin > wide() * .015 ? LETTERS[word] : '');
      bar.title = word + ', ' + clock(run.begin) + ' to ' + clock(run.end);
    });
  }

  // ---- the connection
  let source = null;
  let retry = 0;
  let hiddenFor = 0;
  let failures = 0;
  async function ask(target) {
    const reply = await fetch(target, {credentials: 'same-origin', cache: 'no-store'});
    if (!reply.ok) throw Object.assign(new Error(reply.status + ' ' + (await reply.text()).trim()), {status: reply.status});
    return reply.json();
  }
  function link(words, kind) {
    say($('link'), words);
    $('link').className = kind;
  }
  function note(words) {
    say($('note'), words);
    $('note').hidden = !words;
  }
  function connect() {
    if (source || document.hidden) return;
    source = new EventSource('/live');
    source.addEventListener('state', (event) => {
      note('');
      failures = 0;
      show(JSON.parse(event.data));
      link(state.ended != null ? 'the job has ended' : 'live', state.ended != null ? 'over' : '');
      if (state.ended != null) disconnect();
    });
    source.onopen = () => { note(''); if (!series || Date.now() - fetched > 5000) fetchHistory(); };
    source.onerror = () => {
      disconnect();
      if (state && state.ended != null) return;
      link('not connected', 'lost');
      clearTimeout(retry);
      retry = setTimeout(probe, Math.min(10000, 1000 * 2 ** failures++));
    };
  }
  function disconnect() {
    if (source) source.close();
    source = null;
  }
  // An EventSource does not say why it failed.
  async function probe() {
    try {
      show(await ask('/state'));
      if (!source) connect();
    } catch (error) {
      if (error.status === 403) {
        note('This address needs a new token: the job was started again. Open the address that "lockstep run" has printed.');
      } else if (state) {
        note('The agent does not answer since ' + clock(received) + '. The job has ended, or its machine cannot be reached.');
      }
    }
    if (!source) retry = setTimeout(probe, 2000);
  }
  document.addEventListener('visibilitychange', () => {
    clearTimeout(hiddenFor);
    // A browser gives a host six connections, and pages in the background would hold them.
    if (document.hidden) hiddenFor = setTimeout(disconnect, 20000);
    else if (!source && !(state && state.ended != null)) connect();
  });
  setInterval(() => {
    if (source && state && state.ended == null && Date.now() - received > 5000) link('no news for ' + span(Date.now() - received), 'lost');
  }, 1000);
  connect();
})();
