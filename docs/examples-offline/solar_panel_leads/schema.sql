CREATE TABLE sales_areas (
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
    role TEXT NOT NULL CHECK (role IN ('adviser', 'planner', 'sales_lead', 'office')),
    sales_area_id INTEGER,
    is_active BOOLEAN NOT NULL CHECK (is_active IN (0, 1)),
    FOREIGN KEY (sales_area_id) REFERENCES sales_areas (id) ON DELETE RESTRICT
);
CREATE INDEX ix_users_sales_area_id ON users (sales_area_id);
CREATE TABLE component_classes (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    position INTEGER NOT NULL CHECK (position >= 1)
);
CREATE TABLE solar_components (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    component_class_id INTEGER NOT NULL,
    roof_kind TEXT NOT NULL CHECK (roof_kind IN ('tile', 'metal', 'flat', 'any')),
    warranty_years INTEGER NOT NULL CHECK (warranty_years >= 0),
    origin TEXT NOT NULL CHECK (origin IN ('Germany', 'Austria', 'Spain', 'Malaysia')),
    price_cents INTEGER NOT NULL CHECK (price_cents >= 0),
    is_active BOOLEAN NOT NULL CHECK (is_active IN (0, 1)),
    created_at DATETIME NOT NULL,
    FOREIGN KEY (component_class_id) REFERENCES component_classes (id) ON DELETE RESTRICT
);
CREATE INDEX ix_solar_components_component_class_id ON solar_components (component_class_id);
CREATE TABLE homeowners (
    id INTEGER PRIMARY KEY,
    full_name TEXT NOT NULL UNIQUE,
    email TEXT NOT NULL UNIQUE,
    phone TEXT,
    lead_source TEXT NOT NULL CHECK (lead_source IN ('website', 'fair', 'referral', 'phone')),
    town TEXT,
    joined_on DATE NOT NULL,
    is_blocked BOOLEAN NOT NULL CHECK (is_blocked IN (0, 1))
);
CREATE TABLE equipment_orders (
    id INTEGER PRIMARY KEY,
    reference TEXT NOT NULL UNIQUE,
    homeowner_id INTEGER NOT NULL,
    sales_area_id INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('draft', 'ordered', 'installed', 'cancelled', 'returned')),
    goods_cents INTEGER NOT NULL CHECK (goods_cents >= 0),
    total_cents INTEGER NOT NULL CHECK (total_cents >= 0),
    created_at DATETIME NOT NULL,
    placed_at DATETIME,
    closed_at DATETIME,
    FOREIGN KEY (homeowner_id) REFERENCES homeowners (id) ON DELETE RESTRICT,
    FOREIGN KEY (sales_area_id) REFERENCES sales_areas (id) ON DELETE RESTRICT
);
CREATE INDEX ix_equipment_orders_homeowner_id ON equipment_orders (homeowner_id);
CREATE INDEX ix_equipment_orders_sales_area_id ON equipment_orders (sales_area_id);
CREATE TABLE equipment_lines (
    id INTEGER PRIMARY KEY,
    equipment_order_id INTEGER NOT NULL,
    solar_component_id INTEGER NOT NULL,
    quantity INTEGER NOT NULL CHECK (quantity BETWEEN 1 AND 1000),
    price_cents INTEGER NOT NULL CHECK (price_cents >= 0),
    UNIQUE (equipment_order_id, solar_component_id),
    FOREIGN KEY (equipment_order_id) REFERENCES equipment_orders (id) ON DELETE CASCADE,
    FOREIGN KEY (solar_component_id) REFERENCES solar_components (id) ON DELETE RESTRICT
);
CREATE INDEX ix_equipment_lines_solar_component_id ON equipment_lines (solar_component_id);
CREATE TABLE advisers (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    sales_area_id INTEGER NOT NULL,
    capacity INTEGER NOT NULL CHECK (capacity >= 1),
    fee_cents INTEGER NOT NULL CHECK (fee_cents >= 0),
    is_active BOOLEAN NOT NULL CHECK (is_active IN (0, 1)),
    FOREIGN KEY (sales_area_id) REFERENCES sales_areas (id) ON DELETE RESTRICT
);
CREATE INDEX ix_advisers_sales_area_id ON advisers (sales_area_id);
CREATE TABLE visit_slots (
    id INTEGER PRIMARY KEY,
    adviser_id INTEGER NOT NULL,
    starts_at DATETIME NOT NULL,
    ends_at DATETIME NOT NULL,
    capacity INTEGER NOT NULL CHECK (capacity >= 1),
    is_open BOOLEAN NOT NULL CHECK (is_open IN (0, 1)),
    UNIQUE (adviser_id, starts_at),
    CHECK (ends_at > starts_at),
    FOREIGN KEY (adviser_id) REFERENCES advisers (id) ON DELETE RESTRICT
);
CREATE TABLE site_visits (
    id INTEGER PRIMARY KEY,
    reference TEXT NOT NULL UNIQUE,
    homeowner_id INTEGER NOT NULL,
    visit_slot_id INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('planned', 'done', 'nobody_home', 'called_off')),
    fee_cents INTEGER NOT NULL CHECK (fee_cents >= 0),
    booked_at DATETIME NOT NULL,
    cancelled_at DATETIME,
    FOREIGN KEY (homeowner_id) REFERENCES homeowners (id) ON DELETE RESTRICT,
    FOREIGN KEY (visit_slot_id) REFERENCES visit_slots (id) ON DELETE RESTRICT
);
CREATE INDEX ix_site_visits_homeowner_id ON site_visits (homeowner_id);
CREATE INDEX ix_site_visits_visit_slot_id ON site_visits (visit_slot_id);
CREATE TABLE discount_requests (
    id INTEGER PRIMARY KEY,
    reference TEXT NOT NULL UNIQUE,
    homeowner_id INTEGER NOT NULL,
    purpose TEXT NOT NULL,
    amount_cents INTEGER NOT NULL CHECK (amount_cents >= 1),
    status TEXT NOT NULL CHECK (status IN ('draft', 'submitted', 'granted', 'refused', 'withdrawn')),
    created_at DATETIME NOT NULL,
    submitted_at DATETIME,
    decided_at DATETIME,
    FOREIGN KEY (homeowner_id) REFERENCES homeowners (id) ON DELETE RESTRICT
);
CREATE INDEX ix_discount_requests_homeowner_id ON discount_requests (homeowner_id);
CREATE TABLE discount_steps (
    id INTEGER PRIMARY KEY,
    discount_request_id INTEGER NOT NULL,
    position INTEGER NOT NULL CHECK (position >= 1),
    name TEXT NOT NULL CHECK (name IN ('sales lead', 'management')),
    status TEXT NOT NULL CHECK (status IN ('submitted', 'granted', 'refused')),
    approver_id INTEGER,
    reason TEXT,
    decided_at DATETIME,
    UNIQUE (discount_request_id, position),
    FOREIGN KEY (discount_request_id) REFERENCES discount_requests (id) ON DELETE CASCADE,
    FOREIGN KEY (approver_id) REFERENCES users (id) ON DELETE RESTRICT
);
CREATE INDEX ix_discount_steps_approver_id ON discount_steps (approver_id);
CREATE TABLE offers (
    id INTEGER PRIMARY KEY,
    reference TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('offer', 'revision', 'order')),
    homeowner_id INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('draft', 'sent', 'signed', 'declined', 'void')),
    created_at DATETIME NOT NULL,
    sent_at DATETIME,
    expires_on DATE,
    signed_at DATETIME,
    FOREIGN KEY (homeowner_id) REFERENCES homeowners (id) ON DELETE RESTRICT
);
CREATE INDEX ix_offers_homeowner_id ON offers (homeowner_id);
CREATE TABLE client_signatures (
    id INTEGER PRIMARY KEY,
    offer_id INTEGER NOT NULL,
    homeowner_id INTEGER NOT NULL,
    position INTEGER NOT NULL CHECK (position >= 1),
    status TEXT NOT NULL CHECK (status IN ('sent', 'signed', 'declined')),
    reason TEXT,
    answered_at DATETIME,
    UNIQUE (offer_id, homeowner_id),
    FOREIGN KEY (offer_id) REFERENCES offers (id) ON DELETE CASCADE,
    FOREIGN KEY (homeowner_id) REFERENCES homeowners (id) ON DELETE RESTRICT
);
CREATE INDEX ix_client_signatures_homeowner_id ON client_signatures (homeowner_id);
CREATE TABLE lead_threads (
    id INTEGER PRIMARY KEY,
    subject TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL CHECK (status IN ('open', 'archived')),
    created_at DATETIME NOT NULL,
    last_sent_at DATETIME
);
CREATE TABLE lead_thread_recipients (
    id INTEGER PRIMARY KEY,
    lead_thread_id INTEGER NOT NULL,
    homeowner_id INTEGER NOT NULL,
    added_at DATETIME NOT NULL,
    UNIQUE (lead_thread_id, homeowner_id),
    FOREIGN KEY (lead_thread_id) REFERENCES lead_threads (id) ON DELETE CASCADE,
    FOREIGN KEY (homeowner_id) REFERENCES homeowners (id) ON DELETE RESTRICT
);
CREATE INDEX ix_lead_thread_recipients_homeowner_id ON lead_thread_recipients (homeowner_id);
CREATE TABLE lead_mails (
    id INTEGER PRIMARY KEY,
    lead_thread_id INTEGER NOT NULL,
    sender_id INTEGER NOT NULL,
    body TEXT NOT NULL,
    sent_at DATETIME NOT NULL,
    FOREIGN KEY (lead_thread_id) REFERENCES lead_threads (id) ON DELETE CASCADE,
    FOREIGN KEY (sender_id) REFERENCES users (id) ON DELETE RESTRICT
);
CREATE INDEX ix_lead_mails_lead_thread_id ON lead_mails (lead_thread_id);
CREATE INDEX ix_lead_mails_sender_id ON lead_mails (sender_id);
CREATE TABLE lead_pipelines (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    lead_id INTEGER NOT NULL,
    begins_on DATE NOT NULL,
    ends_on DATE NOT NULL,
    is_closed BOOLEAN NOT NULL CHECK (is_closed IN (0, 1)),
    CHECK (ends_on >= begins_on),
    FOREIGN KEY (lead_id) REFERENCES users (id) ON DELETE RESTRICT
);
CREATE INDEX ix_lead_pipelines_lead_id ON lead_pipelines (lead_id);
CREATE TABLE sales_tasks (
    id INTEGER PRIMARY KEY,
    lead_pipeline_id INTEGER NOT NULL,
    title TEXT NOT NULL,
    assignee_id INTEGER,
    priority TEXT NOT NULL CHECK (priority IN ('low', 'normal', 'high')),
    effort INTEGER NOT NULL CHECK (effort BETWEEN 1 AND 400),
    status TEXT NOT NULL CHECK (status IN ('to_do', 'in_progress', 'with_client', 'done')),
    due_on DATE,
    created_at DATETIME NOT NULL,
    finished_at DATETIME,
    UNIQUE (lead_pipeline_id, title),
    FOREIGN KEY (lead_pipeline_id) REFERENCES lead_pipelines (id) ON DELETE CASCADE,
    FOREIGN KEY (assignee_id) REFERENCES users (id) ON DELETE RESTRICT
);
CREATE INDEX ix_sales_tasks_assignee_id ON sales_tasks (assignee_id);
