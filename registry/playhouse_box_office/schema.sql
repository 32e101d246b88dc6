-- Money is in euro cents. Times are UTC, which is Galway's own time until summer time starts on 29 March 2026.
CREATE TABLE users (
  id INTEGER NOT NULL PRIMARY KEY,
  full_name VARCHAR NOT NULL,
  email VARCHAR NOT NULL UNIQUE,
  role VARCHAR NOT NULL CHECK (role IN ('clerk', 'supervisor', 'house_manager')),
  refund_limit_cents INTEGER NOT NULL CHECK (refund_limit_cents >= 0),
  is_active BOOLEAN NOT NULL
);
CREATE TABLE policies (
  key VARCHAR NOT NULL PRIMARY KEY,
  value INTEGER NOT NULL,
  unit VARCHAR NOT NULL CHECK (unit IN ('minutes', 'hours', 'days', 'years', 'cents', 'tickets')),
  description VARCHAR NOT NULL
);
CREATE TABLE stages (
  id INTEGER NOT NULL PRIMARY KEY,
  name VARCHAR NOT NULL UNIQUE,
  floor VARCHAR NOT NULL,
  has_hearing_loop BOOLEAN NOT NULL
);
CREATE TABLE sections (
  id INTEGER NOT NULL PRIMARY KEY,
  stage_id INTEGER NOT NULL REFERENCES stages (id) ON DELETE CASCADE,
  name VARCHAR NOT NULL,
  UNIQUE (stage_id, name)
);
CREATE TABLE seats (
  id INTEGER NOT NULL PRIMARY KEY,
  section_id INTEGER NOT NULL REFERENCES sections (id) ON DELETE CASCADE,
  row_letter VARCHAR NOT NULL,
  number INTEGER NOT NULL CHECK (number > 0),
  kind VARCHAR NOT NULL CHECK (kind IN ('standard', 'restricted_view', 'wheelchair', 'companion')),
  out_of_service_reason VARCHAR,
  UNIQUE (section_id, row_letter, number)
);
CREATE TABLE shows (
  id INTEGER NOT NULL PRIMARY KEY,
  title VARCHAR NOT NULL UNIQUE,
  company VARCHAR NOT NULL,
  genre VARCHAR NOT NULL CHECK (genre IN ('drama', 'comedy', 'musical', 'family', 'concert', 'thriller')),
  running_minutes INTEGER NOT NULL CHECK (running_minutes > 0),
  minimum_age INTEGER NOT NULL CHECK (minimum_age >= 0),
  synopsis TEXT NOT NULL
);
CREATE TABLE performances (
  id INTEGER NOT NULL PRIMARY KEY,
  show_id INTEGER NOT NULL REFERENCES shows (id) ON DELETE RESTRICT,
  stage_id INTEGER NOT NULL REFERENCES stages (id) ON DELETE RESTRICT,
  starts_at DATETIME NOT NULL,
  kind VARCHAR NOT NULL CHECK (kind IN ('evening', 'matinee', 'relaxed', 'captioned')),
  sales_open_at DATETIME NOT NULL,
  sales_paused BOOLEAN NOT NULL,
  cancelled_at DATETIME,
  cancellation_reason VARCHAR,
  UNIQUE (stage_id, starts_at),
  CHECK (sales_open_at < starts_at),
  CHECK ((cancelled_at IS NULL) = (cancellation_reason IS NULL))
);
CREATE TABLE prices (
  id INTEGER NOT NULL PRIMARY KEY,
  show_id INTEGER NOT NULL REFERENCES shows (id) ON DELETE CASCADE,
  section_id INTEGER NOT NULL REFERENCES sections (id) ON DELETE CASCADE,
  ticket_type VARCHAR NOT NULL CHECK (ticket_type IN ('adult', 'concession', 'child')),
  amount_cents INTEGER NOT NULL CHECK (amount_cents >= 0),
  UNIQUE (show_id, section_id, ticket_type)
);
CREATE TABLE customers (
  id INTEGER NOT NULL PRIMARY KEY,
  full_name VARCHAR NOT NULL,
  email VARCHAR NOT NULL UNIQUE,
  phone VARCHAR,
  town VARCHAR,
  needs_wheelchair_space BOOLEAN NOT NULL,
  created_at DATETIME NOT NULL
);
CREATE TABLE membership_tiers (
  id INTEGER NOT NULL PRIMARY KEY,
  name VARCHAR NOT NULL UNIQUE,
  annual_fee_cents INTEGER NOT NULL CHECK (annual_fee_cents > 0),
  discount_percent INTEGER NOT NULL CHECK (discount_percent BETWEEN 0 AND 100),
  discounted_tickets INTEGER NOT NULL CHECK (discounted_tickets >= 0),
  free_exchanges BOOLEAN NOT NULL
);
CREATE TABLE memberships (
  id INTEGER NOT NULL PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customers (id) ON DELETE CASCADE,
  tier_id INTEGER NOT NULL REFERENCES membership_tiers (id) ON DELETE RESTRICT,
  starts_on DATE NOT NULL,
  ends_on DATE NOT NULL,
  fee_paid_cents INTEGER NOT NULL CHECK (fee_paid_cents >= 0),
  paid_by VARCHAR NOT NULL CHECK (paid_by IN ('card', 'cash')),
  created_at DATETIME NOT NULL,
  UNIQUE (customer_id, starts_on),
  CHECK (starts_on < ends_on)
);
CREATE TABLE promotions (
  id INTEGER NOT NULL PRIMARY KEY,
  code VARCHAR NOT NULL UNIQUE,
  description VARCHAR NOT NULL,
  percent_off INTEGER NOT NULL CHECK (percent_off BETWEEN 1 AND 100),
  show_id INTEGER REFERENCES shows (id) ON DELETE CASCADE,
  valid_from DATE NOT NULL,
  valid_to DATE NOT NULL,
  min_tickets INTEGER NOT NULL CHECK (min_tickets > 0),
  max_bookings INTEGER CHECK (max_bookings > 0),
  CHECK (valid_from <= valid_to)
);
CREATE TABLE vouchers (
  id INTEGER NOT NULL PRIMARY KEY,
  code VARCHAR NOT NULL UNIQUE,
  purchaser_id INTEGER REFERENCES customers (id) ON DELETE SET NULL,
  recipient_name VARCHAR NOT NULL,
  initial_cents INTEGER NOT NULL CHECK (initial_cents > 0),
  balance_cents INTEGER NOT NULL,
  paid_by VARCHAR NOT NULL CHECK (paid_by IN ('card', 'cash')),
  issued_at DATETIME NOT NULL,
  expires_on DATE NOT NULL,
  CHECK (balance_cents BETWEEN 0 AND initial_cents)
);
CREATE TABLE bookings (
  id INTEGER NOT NULL PRIMARY KEY,
  reference VARCHAR NOT NULL UNIQUE,
  customer_id INTEGER NOT NULL REFERENCES customers (id) ON DELETE RESTRICT,
  performance_id INTEGER NOT NULL REFERENCES performances (id) ON DELETE RESTRICT,
  promotion_id INTEGER REFERENCES promotions (id) ON DELETE SET NULL,
  status VARCHAR NOT NULL CHECK (status IN ('held', 'confirmed', 'released', 'refunded')),
  fee_cents INTEGER NOT NULL CHECK (fee_cents >= 0),
  hold_expires_at DATETIME,
  created_by_id INTEGER REFERENCES users (id) ON DELETE SET NULL,
  created_at DATETIME NOT NULL,
  confirmed_at DATETIME,
  CHECK ((status = 'held') = (hold_expires_at IS NOT NULL))
);
CREATE TABLE refunds (
  id INTEGER NOT NULL PRIMARY KEY,
  booking_id INTEGER NOT NULL REFERENCES bookings (id) ON DELETE RESTRICT,
  amount_cents INTEGER NOT NULL CHECK (amount_cents > 0),
  method VARCHAR NOT NULL CHECK (method IN ('original', 'credit')),
  reason VARCHAR NOT NULL CHECK (
    reason IN ('customer_request', 'performance_cancelled', 'exchange_difference', 'type_correction', 'hold_released')
  ),
  channel VARCHAR NOT NULL CHECK (channel IN ('counter', 'web')),
  status VARCHAR NOT NULL CHECK (status IN ('pending', 'paid', 'rejected')),
  note VARCHAR,
  requested_by_id INTEGER REFERENCES users (id) ON DELETE SET NULL,
  requested_at DATETIME NOT NULL,
  decided_by_id INTEGER REFERENCES users (id) ON DELETE SET NULL,
  decided_at DATETIME,
  CHECK ((status = 'pending') = (decided_at IS NULL))
);
CREATE TABLE tickets (
  id INTEGER NOT NULL PRIMARY KEY,
  booking_id INTEGER NOT NULL REFERENCES bookings (id) ON DELETE CASCADE,
  performance_id INTEGER NOT NULL REFERENCES performances (id) ON DELETE RESTRICT,
  seat_id INTEGER NOT NULL REFERENCES seats (id) ON DELETE RESTRICT,
  ticket_type VARCHAR NOT NULL CHECK (ticket_type IN ('adult', 'concession', 'child', 'companion')),
  price_cents INTEGER NOT NULL CHECK (price_cents >= 0),
  discount_percent INTEGER NOT NULL CHECK (discount_percent BETWEEN 0 AND 100),
  status VARCHAR NOT NULL CHECK (status IN ('held', 'sold', 'released', 'exchanged', 'refunded')),
  refund_id INTEGER REFERENCES refunds (id) ON DELETE SET NULL
);
CREATE TABLE payments (
  id INTEGER NOT NULL PRIMARY KEY,
  booking_id INTEGER NOT NULL REFERENCES bookings (id) ON DELETE RESTRICT,
  method VARCHAR NOT NULL CHECK (method IN ('card', 'cash', 'voucher', 'credit')),
  amount_cents INTEGER NOT NULL CHECK (amount_cents > 0),
  voucher_id INTEGER REFERENCES vouchers (id) ON DELETE RESTRICT,
  taken_by_id INTEGER REFERENCES users (id) ON DELETE SET NULL,
  taken_at DATETIME NOT NULL,
  CHECK ((method = 'voucher') = (voucher_id IS NOT NULL))
);
CREATE TABLE credit_entries (
  id INTEGER NOT NULL PRIMARY KEY,
  customer_id INTEGER NOT NULL REFERENCES customers (id) ON DELETE CASCADE,
  booking_id INTEGER REFERENCES bookings (id) ON DELETE SET NULL,
  amount_cents INTEGER NOT NULL CHECK (amount_cents <> 0),
  reason VARCHAR NOT NULL CHECK (reason IN ('refund', 'spent', 'goodwill')),
  note VARCHAR,
  created_by_id INTEGER REFERENCES users (id) ON DELETE SET NULL,
  created_at DATETIME NOT NULL
);
CREATE TABLE waitlist_entries (
  id INTEGER NOT NULL PRIMARY KEY,
  performance_id INTEGER NOT NULL REFERENCES performances (id) ON DELETE CASCADE,
  section_id INTEGER NOT NULL REFERENCES sections (id) ON DELETE CASCADE,
  customer_id INTEGER NOT NULL REFERENCES customers (id) ON DELETE CASCADE,
  seats_wanted INTEGER NOT NULL CHECK (seats_wanted > 0),
  status VARCHAR NOT NULL CHECK (status IN ('waiting', 'offered', 'fulfilled', 'expired', 'withdrawn')),
  booking_id INTEGER REFERENCES bookings (id) ON DELETE SET NULL,
  joined_at DATETIME NOT NULL
);
CREATE TABLE volunteers (
  id INTEGER NOT NULL PRIMARY KEY,
  full_name VARCHAR NOT NULL,
  email VARCHAR NOT NULL UNIQUE,
  first_aid_valid_to DATE,
  max_shifts_per_week INTEGER NOT NULL CHECK (max_shifts_per_week > 0),
  is_active BOOLEAN NOT NULL
);
CREATE TABLE shifts (
  id INTEGER NOT NULL PRIMARY KEY,
  performance_id INTEGER NOT NULL REFERENCES performances (id) ON DELETE CASCADE,
  duty VARCHAR NOT NULL CHECK (duty IN ('door', 'programmes', 'bar', 'first_aid')),
  volunteer_id INTEGER REFERENCES volunteers (id) ON DELETE SET NULL,
  starts_at DATETIME NOT NULL,
  ends_at DATETIME NOT NULL,
  UNIQUE (performance_id, duty),
  CHECK (starts_at < ends_at)
);
CREATE TABLE activity_log (
  id INTEGER NOT NULL PRIMARY KEY,
  user_id INTEGER REFERENCES users (id) ON DELETE SET NULL,
  action VARCHAR NOT NULL,
  entity VARCHAR NOT NULL,
  entity_id INTEGER NOT NULL,
  detail VARCHAR NOT NULL,
  created_at DATETIME NOT NULL
);
CREATE INDEX ix_performances_show_id ON performances (show_id);
CREATE INDEX ix_performances_starts_at ON performances (starts_at);
CREATE INDEX ix_customers_full_name ON customers (full_name);
CREATE INDEX ix_bookings_customer_id ON bookings (customer_id);
CREATE INDEX ix_bookings_performance_id ON bookings (performance_id);
CREATE INDEX ix_tickets_booking_id ON tickets (booking_id);
-- One seat is held by or sold to one booking at a time.
CREATE UNIQUE INDEX uq_tickets_live_seat ON tickets (performance_id, seat_id) WHERE status IN ('held', 'sold');
CREATE INDEX ix_payments_booking_id ON payments (booking_id);
CREATE INDEX ix_refunds_booking_id ON refunds (booking_id);
CREATE INDEX ix_refunds_status ON refunds (status);
CREATE INDEX ix_credit_entries_customer_id ON credit_entries (customer_id);
-- A customer waits once for a performance.
CREATE UNIQUE INDEX uq_waitlist_waiting ON waitlist_entries (performance_id, customer_id) WHERE status = 'waiting';
CREATE INDEX ix_shifts_volunteer_id ON shifts (volunteer_id);
CREATE INDEX ix_activity_log_created_at ON activity_log (created_at);
