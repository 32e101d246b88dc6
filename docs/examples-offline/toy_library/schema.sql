CREATE TABLE lending_points (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    address TEXT NOT NULL,
    phone TEXT NOT NULL,
    is_open BOOLEAN NOT NULL CHECK (is_open IN (0, 1))
);
CREATE TABLE users (
    id INTEGER PRIMARY KEY,
    full_name TEXT NOT NULL UNIQUE,
    email TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('toy_librarian', 'volunteer', 'repairer', 'coordinator')),
    lending_point_id INTEGER,
    is_active BOOLEAN NOT NULL CHECK (is_active IN (0, 1)),
    FOREIGN KEY (lending_point_id) REFERENCES lending_points (id) ON DELETE RESTRICT
);
CREATE INDEX ix_users_lending_point_id ON users (lending_point_id);
CREATE TABLE toy_shelves (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    position INTEGER NOT NULL CHECK (position >= 1)
);
CREATE TABLE toys (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    toy_shelf_id INTEGER NOT NULL,
    pieces INTEGER NOT NULL CHECK (pieces >= 0),
    minimum_age INTEGER NOT NULL CHECK (minimum_age >= 0),
    loan_fee_cents INTEGER NOT NULL CHECK (loan_fee_cents >= 0),
    is_active BOOLEAN NOT NULL CHECK (is_active IN (0, 1)),
    created_at DATETIME NOT NULL,
    FOREIGN KEY (toy_shelf_id) REFERENCES toy_shelves (id) ON DELETE RESTRICT
);
CREATE INDEX ix_toys_toy_shelf_id ON toys (toy_shelf_id);
CREATE TABLE loan_fee_changes (
    id INTEGER PRIMARY KEY,
    toy_id INTEGER NOT NULL,
    old_cents INTEGER NOT NULL CHECK (old_cents >= 0),
    new_cents INTEGER NOT NULL CHECK (new_cents >= 0),
    changed_by_id INTEGER NOT NULL,
    changed_at DATETIME NOT NULL,
    FOREIGN KEY (toy_id) REFERENCES toys (id) ON DELETE CASCADE,
    FOREIGN KEY (changed_by_id) REFERENCES users (id) ON DELETE RESTRICT
);
CREATE INDEX ix_loan_fee_changes_toy_id ON loan_fee_changes (toy_id);
CREATE INDEX ix_loan_fee_changes_changed_by_id ON loan_fee_changes (changed_by_id);
CREATE TABLE families (
    id INTEGER PRIMARY KEY,
    full_name TEXT NOT NULL UNIQUE,
    email TEXT NOT NULL UNIQUE,
    phone TEXT,
    family_kind TEXT NOT NULL CHECK (family_kind IN ('standard', 'large_family', 'day_nursery', 'supported')),
    town TEXT,
    joined_on DATE NOT NULL,
    is_blocked BOOLEAN NOT NULL CHECK (is_blocked IN (0, 1))
);
CREATE TABLE addresses (
    id INTEGER PRIMARY KEY,
    family_id INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('home', 'work', 'billing')),
    street TEXT NOT NULL,
    town TEXT NOT NULL,
    postcode TEXT NOT NULL,
    UNIQUE (family_id, kind),
    FOREIGN KEY (family_id) REFERENCES families (id) ON DELETE CASCADE
);
CREATE TABLE family_notes (
    id INTEGER PRIMARY KEY,
    family_id INTEGER NOT NULL,
    author_id INTEGER NOT NULL,
    body TEXT NOT NULL,
    is_pinned BOOLEAN NOT NULL CHECK (is_pinned IN (0, 1)),
    created_at DATETIME NOT NULL,
    FOREIGN KEY (family_id) REFERENCES families (id) ON DELETE CASCADE,
    FOREIGN KEY (author_id) REFERENCES users (id) ON DELETE RESTRICT
);
CREATE INDEX ix_family_notes_family_id ON family_notes (family_id);
CREATE INDEX ix_family_notes_author_id ON family_notes (author_id);
CREATE TABLE activity_log (
    id INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    subject_id INTEGER NOT NULL CHECK (subject_id >= 1),
    detail TEXT,
    created_at DATETIME NOT NULL,
    FOREIGN KEY (user_id) REFERENCES users (id) ON DELETE RESTRICT
);
CREATE INDEX ix_activity_log_user_id ON activity_log (user_id);
CREATE TABLE discount_codes (
    id INTEGER PRIMARY KEY,
    code TEXT NOT NULL UNIQUE,
    percent INTEGER NOT NULL CHECK (percent BETWEEN 1 AND 60),
    minimum_cents INTEGER NOT NULL CHECK (minimum_cents >= 0),
    is_active BOOLEAN NOT NULL CHECK (is_active IN (0, 1))
);
CREATE TABLE toy_loans (
    id INTEGER PRIMARY KEY,
    reference TEXT NOT NULL UNIQUE,
    family_id INTEGER NOT NULL,
    lending_point_id INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('in_basket', 'reserved', 'lent', 'cancelled', 'returned')),
    discount_code_id INTEGER,
    goods_cents INTEGER NOT NULL CHECK (goods_cents >= 0),
    delivery_cents INTEGER NOT NULL CHECK (delivery_cents >= 0),
    total_cents INTEGER NOT NULL CHECK (total_cents >= 0),
    is_delivered BOOLEAN NOT NULL CHECK (is_delivered IN (0, 1)),
    note TEXT,
    created_at DATETIME NOT NULL,
    placed_at DATETIME,
    closed_at DATETIME,
    FOREIGN KEY (family_id) REFERENCES families (id) ON DELETE RESTRICT,
    FOREIGN KEY (lending_point_id) REFERENCES lending_points (id) ON DELETE RESTRICT,
    FOREIGN KEY (discount_code_id) REFERENCES discount_codes (id) ON DELETE RESTRICT
);
CREATE INDEX ix_toy_loans_family_id ON toy_loans (family_id);
CREATE INDEX ix_toy_loans_lending_point_id ON toy_loans (lending_point_id);
CREATE INDEX ix_toy_loans_discount_code_id ON toy_loans (discount_code_id);
CREATE TABLE loan_lines (
    id INTEGER PRIMARY KEY,
    toy_loan_id INTEGER NOT NULL,
    toy_id INTEGER NOT NULL,
    quantity INTEGER NOT NULL CHECK (quantity BETWEEN 1 AND 1000),
    price_cents INTEGER NOT NULL CHECK (price_cents >= 0),
    UNIQUE (toy_loan_id, toy_id),
    FOREIGN KEY (toy_loan_id) REFERENCES toy_loans (id) ON DELETE CASCADE,
    FOREIGN KEY (toy_id) REFERENCES toys (id) ON DELETE RESTRICT
);
CREATE INDEX ix_loan_lines_toy_id ON loan_lines (toy_id);
CREATE TABLE toy_funds (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    manager_id INTEGER NOT NULL,
    goal_cents INTEGER NOT NULL CHECK (goal_cents >= 1),
    begins_on DATE NOT NULL,
    ends_on DATE NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('planned', 'running', 'closed')),
    CHECK (ends_on >= begins_on),
    FOREIGN KEY (manager_id) REFERENCES users (id) ON DELETE RESTRICT
);
CREATE INDEX ix_toy_funds_manager_id ON toy_funds (manager_id);
CREATE TABLE toy_gifts (
    id INTEGER PRIMARY KEY,
    reference TEXT NOT NULL UNIQUE,
    toy_fund_id INTEGER NOT NULL,
    family_id INTEGER NOT NULL,
    amount_cents INTEGER NOT NULL CHECK (amount_cents >= 1),
    method TEXT NOT NULL CHECK (method IN ('transfer', 'card', 'cash')),
    is_anonymous BOOLEAN NOT NULL CHECK (is_anonymous IN (0, 1)),
    status TEXT NOT NULL CHECK (status IN ('promised', 'received', 'returned')),
    pledged_at DATETIME NOT NULL,
    received_at DATETIME,
    FOREIGN KEY (toy_fund_id) REFERENCES toy_funds (id) ON DELETE RESTRICT,
    FOREIGN KEY (family_id) REFERENCES families (id) ON DELETE RESTRICT
);
CREATE INDEX ix_toy_gifts_toy_fund_id ON toy_gifts (toy_fund_id);
CREATE INDEX ix_toy_gifts_family_id ON toy_gifts (family_id);
CREATE TABLE toy_fund_matchings (
    id INTEGER PRIMARY KEY,
    toy_fund_id INTEGER NOT NULL,
    family_id INTEGER NOT NULL,
    limit_cents INTEGER NOT NULL CHECK (limit_cents >= 100),
    UNIQUE (toy_fund_id, family_id),
    FOREIGN KEY (toy_fund_id) REFERENCES toy_funds (id) ON DELETE CASCADE,
    FOREIGN KEY (family_id) REFERENCES families (id) ON DELETE RESTRICT
);
CREATE INDEX ix_toy_fund_matchings_family_id ON toy_fund_matchings (family_id);
CREATE TABLE toy_fund_news_items (
    id INTEGER PRIMARY KEY,
    toy_fund_id INTEGER NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    posted_at DATETIME NOT NULL,
    FOREIGN KEY (toy_fund_id) REFERENCES toy_funds (id) ON DELETE CASCADE
);
CREATE INDEX ix_toy_fund_news_items_toy_fund_id ON toy_fund_news_items (toy_fund_id);
CREATE TABLE family_plans (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    fee_cents INTEGER NOT NULL CHECK (fee_cents >= 0),
    months INTEGER NOT NULL CHECK (months BETWEEN 1 AND 36),
    is_offered BOOLEAN NOT NULL CHECK (is_offered IN (0, 1))
);
CREATE TABLE membership_years (
    id INTEGER PRIMARY KEY,
    number TEXT NOT NULL UNIQUE,
    family_id INTEGER NOT NULL,
    family_plan_id INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('active', 'resting', 'ended')),
    started_on DATE NOT NULL,
    ends_on DATE,
    created_at DATETIME NOT NULL,
    FOREIGN KEY (family_id) REFERENCES families (id) ON DELETE RESTRICT,
    FOREIGN KEY (family_plan_id) REFERENCES family_plans (id) ON DELETE RESTRICT
);
CREATE INDEX ix_membership_years_family_id ON membership_years (family_id);
CREATE INDEX ix_membership_years_family_plan_id ON membership_years (family_plan_id);
CREATE TABLE year_bills (
    id INTEGER PRIMARY KEY,
    number TEXT NOT NULL UNIQUE,
    membership_year_id INTEGER NOT NULL,
    month DATE NOT NULL,
    amount_cents INTEGER NOT NULL CHECK (amount_cents >= 0),
    status TEXT NOT NULL CHECK (status IN ('unpaid', 'paid', 'waived')),
    paid_on DATE,
    UNIQUE (membership_year_id, month),
    FOREIGN KEY (membership_year_id) REFERENCES membership_years (id) ON DELETE CASCADE
);
CREATE TABLE missing_piece_cases (
    id INTEGER PRIMARY KEY,
    reference TEXT NOT NULL UNIQUE,
    subject TEXT NOT NULL,
    family_id INTEGER NOT NULL,
    topic TEXT NOT NULL CHECK (topic IN ('lost piece', 'broken', 'dirty', 'late')),
    priority TEXT NOT NULL CHECK (priority IN ('low', 'normal', 'high', 'urgent')),
    status TEXT NOT NULL CHECK (status IN ('reported', 'searching', 'family_asked', 'found_or_replaced', 'closed')),
    assignee_id INTEGER,
    toy_id INTEGER,
    due_on DATE NOT NULL,
    resolution TEXT CHECK (resolution IN ('piece found at home', 'printed a new one', 'family paid', 'repaired by volunteer', 'toy retired')),
    opened_at DATETIME NOT NULL,
    resolved_at DATETIME,
    FOREIGN KEY (family_id) REFERENCES families (id) ON DELETE RESTRICT,
    FOREIGN KEY (assignee_id) REFERENCES users (id) ON DELETE RESTRICT,
    FOREIGN KEY (toy_id) REFERENCES toys (id) ON DELETE RESTRICT
);
CREATE INDEX ix_missing_piece_cases_family_id ON missing_piece_cases (family_id);
CREATE INDEX ix_missing_piece_cases_assignee_id ON missing_piece_cases (assignee_id);
CREATE INDEX ix_missing_piece_cases_toy_id ON missing_piece_cases (toy_id);
CREATE TABLE work_entries (
    id INTEGER PRIMARY KEY,
    missing_piece_case_id INTEGER NOT NULL,
    worker_id INTEGER NOT NULL,
    minutes INTEGER NOT NULL CHECK (minutes BETWEEN 5 AND 600),
    what TEXT NOT NULL,
    worked_on DATE NOT NULL,
    FOREIGN KEY (missing_piece_case_id) REFERENCES missing_piece_cases (id) ON DELETE CASCADE,
    FOREIGN KEY (worker_id) REFERENCES users (id) ON DELETE RESTRICT
);
CREATE INDEX ix_work_entries_missing_piece_case_id ON work_entries (missing_piece_case_id);
CREATE INDEX ix_work_entries_worker_id ON work_entries (worker_id);
